#include "engines/attention/softmax.h"

#include <algorithm>
#include <cmath>

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/attention/softmax.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

static_assert(kBlock % kLanes == 0 && kTileRows % kLanes == 0);
constexpr int kBlockVectors = kBlock / kLanes;

// A reference stays until a score exceeds it by this.
constexpr float kMargin = 8;

// e^x for x ≤ kMargin, −inf included, to 3e-7 + 1.2e-7 · |x| of the value (the second part is a
// sixth of that where multiply-adds are fused); 0 below −87, where f32 ends.
//
// e^x = 2^n · 2^(i/kSteps) · 2^f with |f| ≤ 1/(2 · kSteps): the first factor is an exponent, the
// second comes from a table of a vector's lanes where that is long enough, the third is a Taylor
// series.
constexpr int kStepBits = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 0;
constexpr int kSteps = 1 << kStepBits;

HWY_INLINE FloatVec steps_of_two() {
  alignas(64) static constexpr float kSixteenths[] = {
      1.0f,        1.04427378f, 1.09050773f, 1.13878863f, 1.18920712f, 1.24185781f,
      1.29683955f, 1.35425555f, 1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
      1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
  alignas(64) static constexpr float kEighths[] = {1.0f,        1.09050773f, 1.18920712f,
                                                   1.29683955f, 1.41421356f, 1.54221083f,
                                                   1.68179283f, 1.83400809f};
  return hn::Load(FloatTag(), kSteps == 16 ? kSixteenths : kEighths);
}

HWY_INLINE FloatVec exp_of(FloatVec x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  const FloatVec least = hn::Set(d, -87.0f);
  const auto beneath = hn::Lt(x, least);
  const FloatVec bounded = hn::IfThenElse(beneath, least, x);  // not Max: a NaN comes through
  const FloatVec t = hn::Mul(bounded, hn::Set(d, 1.44269504088896341f));
  // Behind numbers of this size f32 has steps of 1/kSteps: the low bits of the sum are i, those
  // above n + 127.
  const FloatVec shift = hn::Set(d, static_cast<float>((3 << (22 - kStepBits)) + 127));
  const FloatVec shifted = hn::Add(t, shift);
  const FloatVec f = hn::Sub(t, hn::Sub(shifted, shift));
  constexpr float kTaylor[] = {
      1,           6.93147181e-1f, 2.40226507e-1f, 5.55041087e-2f, 9.61812911e-3f, 1.33335581e-3f,
      1.540353e-4f};
  constexpr int kDegree = kSteps == 1 ? 6 : kSteps == 8 ? 4 : 3;
  FloatVec series = hn::Set(d, kTaylor[kDegree]);
  for (int i = kDegree - 1; i > 0; --i) series = hn::MulAdd(series, f, hn::Set(d, kTaylor[i]));
  const auto sum_bits = hn::BitCast(bits, shifted);
  const FloatVec power = hn::BitCast(d, hn::ShiftLeft<23>(hn::ShiftRight<kStepBits>(sum_bits)));
  FloatVec y;
  if constexpr (kSteps == 1) {
    y = hn::MulAdd(series, f, hn::Set(d, 1.0f));
  } else {
    const auto steps = hn::IndicesFromVec(d, hn::And(sum_bits, hn::Set(bits, kSteps - 1)));
    const FloatVec step = hn::TableLookupLanes(steps_of_two(), steps);
    y = hn::MulAdd(series, hn::Mul(step, f), step);
  }
  // A product, not a sum of bits, since that would make a number of a NaN.
  return hn::IfThenZeroElse(beneath, hn::Mul(y, power));
}

void scale_floats(float* x, int n, FloatVec factor) {
  const FloatTag d;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
  for (; i < n; ++i) x[i] *= hn::GetLane(factor);
}

HWY_INLINE FloatVec largest_of(const float* s) {
  const FloatTag d;
  FloatVec largest = hn::LoadU(d, s);
  for (int v = 1; v < kBlockVectors; ++v) largest = hn::Max(largest, hn::LoadU(d, s + v * kLanes));
  return largest;
}

// Scores that exceed reference m by too much. For m = −inf those are all but −inf.
HWY_INLINE auto exceeding(FloatVec scores, float m) {
  const FloatTag d;
  return hn::Gt(hn::Sub(scores, hn::Set(d, m)), hn::Set(d, kMargin));
}

bool softmax_exceeds(const float* s, int queries, const SoftmaxStates& states) {
  const FloatTag d;
  auto any = hn::FirstN(d, 0);
  for (int i = 0; i < queries; ++i) {
    any = hn::Or(any, exceeding(largest_of(s + i * kBlock), states.m[i]));
  }
  return !hn::AllFalse(d, any);
}

void softmax_raise(const float* s, int queries, const SoftmaxStates& states) {
  const FloatTag d;
  for (int i = 0; i < queries; ++i) {
    float& m = states.m[i];
    const FloatVec scores = largest_of(s + i * kBlock);
    if (hn::AllFalse(d, exceeding(scores, m))) continue;
    const float largest = hn::GetLane(hn::MaxOfLanes(d, scores));
    if (m > -INFINITY) {
      const FloatVec factor = exp_of(hn::Set(d, m - largest));
      scale_floats(states.l + int64_t{i} * kTileRows, kTileRows, factor);
      scale_floats(states.o + int64_t{i} * states.dim, states.dim, factor);
    }
    m = largest;
  }
}

void softmax_block(float* s, int queries, const SoftmaxStates& states) {
  const FloatTag d;
  for (int i = 0; i < queries; ++i) {
    // While nothing was seen any finite reference gives p = 0 everywhere.
    const float m = states.m[i] > -INFINITY ? states.m[i] : 0.0f;
    float* l = states.l + int64_t{i} * kTileRows;
    FloatVec sum = hn::LoadU(d, l);
    for (int v = 0; v < kBlockVectors; ++v) {
      float* scores = s + i * kBlock + v * kLanes;
      const FloatVec p = exp_of(hn::Sub(hn::LoadU(d, scores), hn::Set(d, m)));
      sum = hn::Add(sum, p);
      hn::StoreU(p, d, scores);
    }
    hn::StoreU(sum, d, l);
  }
}

void softmax_finish(int queries, const SoftmaxStates& states) {
  const FloatTag d;
  for (int query = 0; query < queries; ++query) {
    float& l = states.l[query * kTileRows];
    l = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, &l)));
    if (l == 0) continue;
    scale_floats(states.o + int64_t{query} * states.dim, states.dim, hn::Set(d, 1.0f / l));
  }
}

// o = (l_a · e^(m_a − m) · o_a + l_b · e^(m_b − m) · o_b) / l
void softmax_merge(AttentionState& a, float* o_a, const AttentionState& b, const float* o_b,
                   int dim) {
  if (b.l == 0) return;
  if (a.l == 0) {
    a = b;
    std::copy_n(o_b, dim, o_a);
    return;
  }
  const FloatTag d;
  const float m = std::max(a.m, b.m);
  const float from_a = a.l * hn::GetLane(exp_of(hn::Set(d, a.m - m)));
  const float from_b = b.l * hn::GetLane(exp_of(hn::Set(d, b.m - m)));
  const float l = from_a + from_b;
  const FloatVec weight_a = hn::Set(d, from_a / l), weight_b = hn::Set(d, from_b / l);
  int i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    const FloatVec of_b = hn::Mul(hn::LoadU(d, o_b + i), weight_b);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, o_a + i), weight_a, of_b), d, o_a + i);
  }
  a = {m, l};
  if (i == dim) return;
  const FloatVec of_b = hn::Mul(load_first(o_b + i, dim - i), weight_b);
  store_first(hn::MulAdd(load_first(o_a + i, dim - i), weight_a, of_b), o_a + i, dim - i);
}

SoftmaxKernels make_softmax_kernels() {
  return {&softmax_exceeds, &softmax_raise, &softmax_block, &softmax_finish, &softmax_merge};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_softmax_kernels);

SoftmaxKernels softmax_kernels(int64_t simd_target) {
  return KVMARK_DISPATCH(make_softmax_kernels, simd_target)();
}

}  // namespace kvmark
#endif  // HWY_ONCE
