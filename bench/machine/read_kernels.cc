#include "bench/machine/read_kernels.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engines/codecs/simd.h"
#include "engines/core/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine/read_kernels.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using WordTag = hn::ScalableTag<uint64_t>;
using WordVec = hn::Vec<WordTag>;

constexpr int64_t kVectorBytes = static_cast<int64_t>(HWY_LANES(uint64_t) * sizeof(uint64_t));
static_assert(kReadLine % kVectorBytes == 0);
constexpr int64_t kStep = 4 * kReadLine;  // of one stream before the next has its turn
constexpr int64_t kAhead = 2048;          // bytes from a read to the line that it prefetches
constexpr int kSums = 4;                  // independent, so that no addition waits for another

// Adds the bytes [from, from + n) of a run; n: whole lines known at compile time.
template <int64_t n>
HWY_INLINE void add_bytes(const std::byte* from, WordVec (&sums)[kSums]) {
  const WordTag d;
  HWY_UNROLL(16)
  for (int64_t i = 0; i < n / kVectorBytes; ++i) {
    const auto* words = reinterpret_cast<const uint64_t*>(from + i * kVectorBytes);
    sums[i % kSums] = hn::Add(sums[i % kSums], hn::Load(d, words));
  }
}

// Reads the bytes [from, to) of kStreams runs alternately; byte i of a run prefetches `ahead`[i].
template <int kStreams, bool kPrefetch>
HWY_INLINE void read_range(const std::byte* const (&run)[kStreams],
                           const std::byte* const (&ahead)[kStreams], int64_t from, int64_t to,
                           WordVec (&sums)[kSums]) {
  int64_t i = from;
  for (; i + kStep <= to; i += kStep) {
    for (int s = 0; s < kStreams; ++s) {
      if constexpr (kPrefetch) {
        for (int64_t line = 0; line < kStep; line += kReadLine) {
          hwy::Prefetch(ahead[s] + i + line);
        }
      }
      add_bytes<kStep>(run[s] + i, sums);
    }
  }
  for (; i < to; i += kReadLine) {
    for (int s = 0; s < kStreams; ++s) {
      if constexpr (kPrefetch) hwy::Prefetch(ahead[s] + i);
      add_bytes<kReadLine>(run[s] + i, sums);
    }
  }
}

// Reads kStreams runs of `bytes` each; their last lines prefetch the first ones of `next`.
template <int kStreams, bool kPrefetch>
HWY_INLINE void read_group(const std::byte* const (&run)[kStreams],
                           const std::byte* const (&next)[kStreams], int64_t bytes,
                           WordVec (&sums)[kSums]) {
  const int64_t distance = std::min(kAhead, bytes);
  const std::byte* same[kStreams];
  const std::byte* other[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    same[s] = run[s] + distance;
    other[s] = next[s] - (bytes - distance);
  }
  read_range<kStreams, kPrefetch>(run, same, 0, bytes - distance, sums);
  read_range<kStreams, kPrefetch>(run, other, bytes - distance, bytes, sums);
}

// The runs order[i, …, end) in groups of kStreams, as long as they are full. Returns the first
// that is left.
template <int kStreams, bool kPrefetch>
HWY_INLINE int64_t read_groups(const std::byte* base, const int32_t* order, int64_t i, int64_t end,
                               int64_t bytes, WordVec (&sums)[kSums]) {
  for (; i + kStreams <= end; i += kStreams) {
    const std::byte* run[kStreams];
    const std::byte* next[kStreams];
    for (int s = 0; s < kStreams; ++s) {
      run[s] = base + order[i + s] * bytes;
      next[s] = base + order[std::min(i + kStreams + s, end - 1)] * bytes;
    }
    read_group<kStreams, kPrefetch>(run, next, bytes, sums);
  }
  return i;
}

template <int kStreams, bool kPrefetch>
uint64_t read_runs(const std::byte* base, const int32_t* order, int64_t runs, int64_t run_bytes) {
  const WordTag d;
  WordVec sums[kSums];
  for (WordVec& sum : sums) sum = hn::Zero(d);
  const int64_t left = read_groups<kStreams, kPrefetch>(base, order, 0, runs, run_bytes, sums);
  read_groups<1, kPrefetch>(base, order, left, runs, run_bytes, sums);
  const WordVec sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  // By hand: SumOfLanes adds as signed numbers on some targets, which must not overflow.
  HWY_ALIGN uint64_t lanes[HWY_LANES(uint64_t)];
  hn::Store(sum, d, lanes);
  return std::accumulate(std::begin(lanes), std::end(lanes), uint64_t{0});
}

template <bool kPrefetch>
ReadKernel kernel_of(int streams) {
  switch (streams) {
    case 1:
      return &read_runs<1, kPrefetch>;
    case 2:
      return &read_runs<2, kPrefetch>;
    case 4:
      return &read_runs<4, kPrefetch>;
  }
  return nullptr;
}

ReadKernel make_read_kernel(int streams, bool prefetch) {
  return prefetch ? kernel_of<true>(streams) : kernel_of<false>(streams);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_read_kernel);

ReadKernel read_kernel(int64_t simd_target, ReadVariant variant) {
  const ReadKernel kernel =
      KVMARK_DISPATCH(make_read_kernel, simd_target)(variant.streams, variant.prefetch);
  check(kernel != nullptr, "a read of {} streams: expected 1, 2 or 4", variant.streams);
  return kernel;
}

}  // namespace kvmark
#endif  // HWY_ONCE
