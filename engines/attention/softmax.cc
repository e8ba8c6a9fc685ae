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

// e^x for x ≤ 0, −inf included, to 3e-7 + 1.2e-7 · |x| of the value (the second part is a sixth of
// that where multiply-adds are fused); 0 below −87, where f32 ends.
HWY_INLINE FloatVec exp_of(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec least = hn::Set(d, -87.0f);
  const auto beneath = hn::Lt(x, least);
  const FloatVec bounded = hn::IfThenElse(beneath, least, x);  // not Max: a NaN comes through
  const FloatVec log2e = hn::Set(d, 1.44269504088896341f);
  // e^x = 2^n · 2^f with |f| ≤ 1/2; the Taylor series of 2^f is off by less than 1.3e-7.
  const FloatVec n = hn::Round(hn::Mul(bounded, log2e));
  const FloatVec f = hn::MulSub(bounded, log2e, n);
  FloatVec y = hn::Set(d, 1.540353e-4f);
  y = hn::MulAdd(y, f, hn::Set(d, 1.33335581e-3f));
  y = hn::MulAdd(y, f, hn::Set(d, 9.61812911e-3f));
  y = hn::MulAdd(y, f, hn::Set(d, 5.55041087e-2f));
  y = hn::MulAdd(y, f, hn::Set(d, 2.40226507e-1f));
  y = hn::MulAdd(y, f, hn::Set(d, 6.93147181e-1f));
  y = hn::MulAdd(y, f, hn::Set(d, 1.0f));
  // A product, not a sum of bits, since that would make a number of a NaN.
  const auto biased = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  const FloatVec scaled = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(biased)));
  return hn::IfThenZeroElse(beneath, scaled);
}

void scale_floats(float* x, int n, FloatVec factor) {
  const FloatTag d;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
  for (; i < n; ++i) x[i] *= hn::GetLane(factor);
}

// A larger maximum was found: what was summed with the old one shrinks.
HWY_NOINLINE void raise_maximum(float now, int query, const SoftmaxStates& states) {
  const FloatTag d;
  float& m = states.m[query];
  if (m > -INFINITY) {
    const FloatVec factor = exp_of(hn::Set(d, m - now));
    scale_floats(states.l + query * kTileRows, kTileRows, factor);
    scale_floats(states.o + int64_t{query} * states.dim, states.dim, factor);
  }
  m = now;
}

HWY_INLINE void softmax_query(float* s, int visible, int query, const SoftmaxStates& states) {
  const FloatTag d;
  const FloatVec nothing = hn::Set(d, -INFINITY);
  FloatVec scores[kBlockVectors];
  for (int v = 0; v < kBlockVectors; ++v) scores[v] = hn::LoadU(d, s + v * kLanes);
  if (visible < kBlock) {
    for (int v = 0; v < kBlockVectors; ++v) {
      const auto here = static_cast<size_t>(std::max(0, visible - v * kLanes));
      scores[v] = hn::IfThenElse(hn::FirstN(d, here), scores[v], nothing);
    }
  }
  FloatVec largest = scores[0];
  for (int v = 1; v < kBlockVectors; ++v) largest = hn::Max(largest, scores[v]);
  if (!hn::AllFalse(d, hn::Gt(largest, hn::Set(d, states.m[query])))) {
    raise_maximum(hn::GetLane(hn::MaxOfLanes(d, largest)), query, states);
  }
  // While nothing was seen any finite reference gives p = 0 everywhere.
  const float m = states.m[query];
  const FloatVec reference = hn::Set(d, m > -INFINITY ? m : 0.0f);
  float* l = states.l + query * kTileRows;
  FloatVec sum = hn::LoadU(d, l);
  for (int v = 0; v < kBlockVectors; ++v) {
    const FloatVec p = exp_of(hn::Sub(scores[v], reference));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, s + v * kLanes);
  }
  hn::StoreU(sum, d, l);
}

void softmax_block(float* s, int rows, int group, int visible, const SoftmaxStates& states) {
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < group; ++head) {
      const int query = row * group + head;
      softmax_query(s + int64_t{query} * kBlock, visible + row, query, states);
    }
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

SoftmaxKernels make_softmax_kernels() { return {&softmax_block, &softmax_finish}; }

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
