// Plain reads of memory as fast as they go, compiled for each SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvmark {

// One way of reading. Which is fastest depends on the machine, the threads and the size.
struct ReadVariant {
  int streams;    // 1, 2 or 4 runs of memory that a thread reads alternately
  bool prefetch;  // touches lines a few KiB ahead of each stream

  bool operator==(const ReadVariant&) const = default;
};

// A multiple of this, a cache line, is read at a time; runs start and end at one.
inline constexpr int64_t kReadLine = 64;

// Reads the runs order[0], …, order[runs − 1] of the memory at `base`, run i being the bytes
// [i · run_bytes, (i + 1) · run_bytes), each from front to back. base: aligned to kReadLine;
// run_bytes: a positive multiple of it. Returns the sum of the runs' 64-bit words modulo 2^64.
using ReadKernel = uint64_t (*)(const std::byte* base, const int32_t* order, int64_t runs,
                                int64_t run_bytes);

// For one of simd_targets(). Throws LogicError for other numbers of streams.
ReadKernel read_kernel(int64_t simd_target, ReadVariant variant);

}  // namespace kvmark
