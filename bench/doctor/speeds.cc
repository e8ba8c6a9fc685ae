#include "bench/doctor/speeds.h"

#include <algorithm>
#include <latch>
#include <numeric>
#include <thread>

#include "bench/machine/fma_rate.h"
#include "bench/machine/read_ceiling.h"
#include "engines/codecs/simd.h"
#include "engines/core/thread_pool.h"

namespace kvmark {
namespace {

constexpr int kTimes = 9;
constexpr int64_t kMinDram = int64_t{256} << 20;
constexpr int64_t kMaxDram = int64_t{2} << 30;
constexpr int kDramCaches = 4;  // times the largest cache: what is kept of it counts little

template <typename Measure>
double best_of_times(Measure measure) {
  double best = 0;
  for (int time = 0; time < kTimes; ++time) best = std::max(best, measure());
  return best;
}

// The threads read memory of their own at the same time, so that none of it moves between the
// caches of two cores.
double private_read_gb_per_s(int threads, int64_t bytes) {
  std::vector<double> rates(threads);
  std::latch ready(threads);
  const auto measure = [&](int thread) {
    ThreadPool alone(1);
    ReadCeiling ceiling(alone, bytes);
    ready.arrive_and_wait();
    rates[thread] = best_of_times([&] { return ceiling.measure(); });
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(measure, thread);
  measure(0);
  for (std::jthread& other : others) other.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double shared_read_gb_per_s(int threads, int64_t bytes) {
  ThreadPool pool(threads);
  ReadCeiling ceiling(pool, bytes);
  return best_of_times([&] { return ceiling.measure(); });
}

}  // namespace

std::vector<ReadSize> read_sizes(const std::vector<CacheLevel>& caches,
                                 std::optional<int64_t> available_bytes) {
  std::vector<ReadSize> sizes;
  int64_t largest = 0;
  for (const CacheLevel& cache : caches) {
    if (cache.level == 2) sizes.push_back({"L2", cache.bytes / 2, true});
    if (cache.level == 3) sizes.push_back({"L3", cache.bytes / 2, false});
    largest = std::max(largest, cache.bytes);
  }
  int64_t dram = std::clamp(kDramCaches * largest, kMinDram, kMaxDram);
  if (available_bytes) dram = std::min(dram, std::max<int64_t>(1, *available_bytes / 4));
  if (dram > largest) sizes.push_back({"DRAM", dram, false});
  return sizes;
}

std::vector<int> thread_counts(int cores) {
  std::vector<int> counts;
  for (int threads = 1; threads < cores; threads *= 2) counts.push_back(threads);
  counts.push_back(std::max(1, cores));
  return counts;
}

std::vector<ReadSpeed> measure_reads(const std::vector<ReadSize>& sizes,
                                     const std::vector<int>& threads) {
  std::vector<ReadSpeed> speeds;
  for (const ReadSize& size : sizes) {
    for (const int n : threads) {
      const double rate = size.each_thread ? private_read_gb_per_s(n, size.bytes)
                                           : shared_read_gb_per_s(n, size.bytes);
      speeds.push_back({size.memory, size.bytes, n, rate});
    }
  }
  return speeds;
}

std::vector<FmaSpeed> measure_fma(const std::vector<int>& threads) {
  std::vector<FmaSpeed> speeds;
  for (const int64_t target : simd_targets()) {
    for (const int n : threads) {
      ThreadPool pool(n);
      const double rate = best_of_times([&] { return fma_gflop_per_s(pool, target); });
      speeds.push_back({hwy::TargetName(target), n, rate});
    }
  }
  return speeds;
}

}  // namespace kvmark
