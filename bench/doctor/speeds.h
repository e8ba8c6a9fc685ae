// The machine's ceilings: how fast it reads at the sizes of its caches, and how fast it computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/doctor/machine_facts.h"

namespace kvmark {

// All threads together, in GB/s (1e9 bytes).
struct ReadSpeed {
  std::string memory;  // "L2", "L3", "DRAM"
  int64_t bytes;       // read again and again; of L2: by each thread for itself
  int threads;
  double gb_per_s;
};

// All threads together, f32, in GFLOP/s (1e9).
struct FmaSpeed {
  std::string simd;
  int threads;
  double gflop_per_s;
};

// Which bytes stand for which memory.
struct ReadSize {
  std::string memory;
  int64_t bytes;
  bool each_thread;  // each thread reads as many of its own; else all share them
};
// Half of L2 for each thread and half of L3 for all, where these caches are known; then what no
// cache holds: four times the largest, within [256 MiB, 2 GiB] and a quarter of
// `available_bytes` (nothing: unknown).
std::vector<ReadSize> read_sizes(const std::vector<CacheLevel>& caches,
                                 std::optional<int64_t> available_bytes);

// 1, 2, 4, … and `cores` itself.
std::vector<int> thread_counts(int cores);

// The best of several passes each, as befits a limit; a second or so for each thread count.
std::vector<ReadSpeed> measure_reads(const std::vector<ReadSize>& sizes,
                                     const std::vector<int>& threads);

// The same of every SIMD target of this build and machine, best first; some 100 ms each and thread
// count.
std::vector<FmaSpeed> measure_fma(const std::vector<int>& threads);

}  // namespace kvmark
