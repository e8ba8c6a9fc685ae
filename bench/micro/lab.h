// What the micro-benchmarks share: threads, the machine's limits beside them, and fixtures.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/machine/fma_rate.h"
#include "bench/machine/read_ceiling.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

// A pool and what the machine gives its threads. The limits are found where they are first asked
// for.
class Machine {
 public:
  // The ceiling reads `working_set_bytes` of its own.
  Machine(int threads, int64_t working_set_bytes)
      : working_set_bytes_(working_set_bytes), pool_(threads) {}

  int threads() const { return pool_.threads(); }
  int64_t working_set_bytes() const { return working_set_bytes_; }
  ThreadPool& pool() { return pool_; }
  ReadCeiling& ceiling();

 private:
  int64_t working_set_bytes_;
  ThreadPool pool_;
  std::optional<ReadCeiling> ceiling_;
};

// Everything that outlives a benchmark: machines of one thread and of all that there are, and the
// fixture in use.
class Lab {
 public:
  // Passes walk over `working_set_bytes` or a little more.
  explicit Lab(int64_t working_set_bytes);

  const std::vector<std::unique_ptr<Machine>>& machines() const { return machines_; }

  // What runs where no filter is given, minutes in all: with all threads, every codec and layout at
  // four query heads per KV head, head_dim 64 and 16,384 positions, and whatever is no attention.
  std::string default_filter() const;

  // Registers run(state, *make()), in seconds that it says itself. Google Benchmark calls a
  // function several times until it knows how many iterations it wants: what takes seconds to fill
  // is made for the first call, and goes when another benchmark makes its own.
  template <typename Make, typename Run>
  void add(const std::string& name, const Make& make, const Run& run) {
    using Fixture = typename std::invoke_result_t<Make>::element_type;
    const auto function = [this, name, make, run](benchmark::State& state) {
      if (name != made_for_) {
        fixture_.reset();  // the old memory goes before the new is taken
        fixture_ = make();
        made_for_ = name;
      }
      run(state, *static_cast<Fixture*>(fixture_.get()));
    };
    benchmark::RegisterBenchmark(name.c_str(), function)->UseManualTime();
  }

 private:
  std::vector<std::unique_ptr<Machine>> machines_;
  std::shared_ptr<void> fixture_;
  std::string made_for_;  // the benchmark that has the fixture
};

// pass() -> seconds that it took to read `bytes`; before each the ceiling is measured. Counters,
// medians over the iterations: `gb_per_s`, `ceiling_gb_per_s`, and `of_ceiling`, which is the
// median of the pairs' ratios.
template <typename Pass>
void time_reads(benchmark::State& state, ReadCeiling& ceiling, int64_t bytes, const Pass& pass);

// The same for pass() that does `flop` operations (a multiply-add is two): `gflop_per_s`,
// `fma_gflop_per_s` and `of_fma_rate`.
template <typename Pass>
void time_flops(benchmark::State& state, ThreadPool& pool, double flop, const Pass& pass);

// `n` numbers of a normal distribution, always the same.
std::vector<float> normal_values(int64_t n);

// The middle one of what was measured.
double median(const std::vector<double>& samples);

// Rates of passes and of the limit that was measured before each, in one unit.
struct Rates {
  std::vector<double> passes, limits;

  void add(double pass, double limit) {
    passes.push_back(pass);
    limits.push_back(limit);
  }
  // Sets the medians: of the passes, the limits, and the ratios of the pairs.
  void report(benchmark::State& state, const char* pass, const char* limit,
              const char* ratio) const;
};

template <typename Pass>
void time_reads(benchmark::State& state, ReadCeiling& ceiling, int64_t bytes, const Pass& pass) {
  Rates rates;
  for (auto _ : state) {
    const double limit = ceiling.measure();
    const double seconds = pass();
    state.SetIterationTime(seconds);
    rates.add(static_cast<double>(bytes) / seconds / 1e9, limit);
  }
  rates.report(state, "gb_per_s", "ceiling_gb_per_s", "of_ceiling");
}

template <typename Pass>
void time_flops(benchmark::State& state, ThreadPool& pool, double flop, const Pass& pass) {
  Rates rates;
  for (auto _ : state) {
    const double limit = fma_gflop_per_s(pool);
    const double seconds = pass();
    state.SetIterationTime(seconds);
    rates.add(flop / seconds / 1e9, limit);
  }
  rates.report(state, "gflop_per_s", "fma_gflop_per_s", "of_fma_rate");
}

}  // namespace kvmark
