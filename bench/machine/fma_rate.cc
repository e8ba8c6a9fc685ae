#include "bench/machine/fma_rate.h"

#include <chrono>

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine/fma_rate.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// Two units with a latency of four to five cycles want eight to ten; sixteen registers hold twelve
// beside the operands.
constexpr int kVectors = 12;

float run_chains(int64_t rounds, float factor, float addend) {
  const FloatTag d;
  const FloatVec times = hn::Set(d, factor), plus = hn::Set(d, addend);
  FloatVec x[kVectors];
  for (FloatVec& v : x) v = hn::Zero(d);
  for (int64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12)
    for (int i = 0; i < kVectors; ++i) x[i] = hn::MulAdd(x[i], times, plus);
  }
  FloatVec sum = hn::Zero(d);
  for (const FloatVec& v : x) sum = hn::Add(sum, v);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

FmaKernel make_fma_kernel() { return {&run_chains, kVectors * kLanes}; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {
namespace {

constexpr double kSeconds = 5e-3;   // that the measurement lasts at least
constexpr int kPartsPerThread = 4;  // so that a thread that was held up does less

}  // namespace

HWY_EXPORT(make_fma_kernel);

FmaKernel fma_kernel(int64_t simd_target) {
  return KVMARK_DISPATCH(make_fma_kernel, simd_target)();
}

double fma_gflop_per_s(ThreadPool& pool) { return fma_gflop_per_s(pool, chosen_simd_target()); }

double fma_gflop_per_s(ThreadPool& pool, int64_t simd_target) {
  const FmaKernel kernel = fma_kernel(simd_target);
  const int parts = kPartsPerThread * pool.threads();
  // Shorter runs first: they wake the threads and the clock.
  for (int64_t rounds = 1 << 12;; rounds *= 2) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(parts, [&](int, int) { kernel.run(rounds, 0.5f, 1.0f); });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double flops = 2.0 * kernel.chains * static_cast<double>(rounds) * parts;
    if (seconds >= kSeconds) return flops / seconds / 1e9;
  }
}

}  // namespace kvmark
#endif  // HWY_ONCE
