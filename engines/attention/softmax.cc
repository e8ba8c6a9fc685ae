#include "engines/attention/softmax.h"

#include <cmath>

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/attention/softmax.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

static_assert(kBlock % kLanes == 0);

// e^x for x ≤ 0, x = −inf included.
HWY_INLINE FloatVec exp_of(FloatVec x) {
  const FloatTag d;
  // Exp gives 0 below −104; infinities must not reach its conversion to integers.
  return hn::Exp(d, hn::Max(x, hn::Set(d, -105.0f)));
}

float softmax_block(float* s, int visible, float* m, float* l) {
  const FloatTag d;
  const FloatVec nothing = hn::Set(d, -INFINITY);
  FloatVec largest = nothing;
  for (int i = 0; i < kBlock; i += kLanes) {
    const int here = visible - i;
    const auto seen = hn::FirstN(d, static_cast<size_t>(here > 0 ? here : 0));
    const FloatVec scores = hn::IfThenElse(seen, hn::LoadU(d, s + i), nothing);
    largest = hn::Max(largest, scores);
    hn::StoreU(scores, d, s + i);
  }
  const float block_max = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float before = *m;
  const float now = block_max > before ? block_max : before;
  // While nothing was seen any finite reference gives p = 0 everywhere.
  const FloatVec reference = hn::Set(d, now > -INFINITY ? now : 0.0f);
  FloatVec sum = hn::Zero(d);
  for (int i = 0; i < kBlock; i += kLanes) {
    const FloatVec p = exp_of(hn::Sub(hn::LoadU(d, s + i), reference));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, s + i);
  }
  const bool stays = now == before || before == -INFINITY;
  const float factor = stays ? 1.0f : hn::GetLane(exp_of(hn::Set(d, before - now)));
  *m = now;
  *l = *l * factor + hn::GetLane(hn::SumOfLanes(d, sum));
  return factor;
}

void scale_floats(float* x, int n, float factor) {
  const FloatTag d;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  }
  for (; i < n; ++i) x[i] *= factor;
}

SoftmaxKernels make_softmax_kernels() { return {&softmax_block, &scale_floats}; }

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
