// How fast this machine reads memory: the limit of everything that reads a KV cache.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/machine/read_kernels.h"
#include "engines/core/buffer.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

// Reads a buffer of its own with all threads of a pool. A pass reads every byte once: in one piece
// a thread walks over its parts, in pages the pages are read in a shuffled order, each from front
// to back, as attention reads the blocks of a pool that other sequences have fragmented. Parts go
// to whichever thread is free.
class ReadCeiling {
 public:
  // Takes the buffer's memory, writes it, and finds out which variant reads it fastest: the best
  // median of kTrials passes in turn. `bytes` ≥ 1 and `page_bytes` ≥ 0 (0: one piece) are rounded
  // up to whole lines, `bytes` then to whole pages. The pool must outlive this object. Throws
  // RuntimeError when the memory cannot be had, LogicError for sizes out of range.
  ReadCeiling(ThreadPool& pool, int64_t bytes, int64_t page_bytes = 0);

  // Bandwidth of the fastest variant now, in GB/s (1e9 bytes). One pass, or where the memory is so
  // small that a pass is too short for a clock, as many as last about 1 ms.
  double measure();

  // What a pass reads, and so the memory that is held.
  int64_t bytes() const { return static_cast<int64_t>(buffer_.size()); }
  const Buffer& buffer() const { return buffer_; }
  ReadVariant fastest() const { return fastest_; }

  // One pass with one of kVariants: the sum of the buffer's 64-bit words modulo 2^64.
  uint64_t sum(ReadVariant variant) { return read(variant, 1); }

  static constexpr std::array<ReadVariant, 6> kVariants = {
      {{1, false}, {1, true}, {2, false}, {2, true}, {4, false}, {4, true}}};

 private:
  // Unsynchronized sums of threads, a cache line each.
  struct alignas(64) Sum {
    uint64_t words;
  };

  void fill();
  void calibrate();
  // `passes` passes in one loop of the pool.
  uint64_t read(ReadVariant variant, int64_t passes);
  uint64_t read_part(ReadKernel kernel, int streams, int64_t part) const;
  double gb_per_s(ReadVariant variant, int64_t passes);

  ThreadPool& pool_;
  int64_t page_bytes_;
  Buffer buffer_;
  std::vector<int32_t> order_;  // of the pages
  int parts_;                   // that a pass is dealt in
  int64_t passes_ = 1;          // of a measurement
  ReadVariant fastest_ = kVariants[0];
  std::vector<Sum> sums_;
};

}  // namespace kvmark
