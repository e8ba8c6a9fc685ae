#include "bench/micro/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "bench/record/stats.h"

namespace kvmark {

ReadCeiling& Machine::ceiling() {
  if (!ceiling_) ceiling_.emplace(pool_, working_set_bytes_);
  return *ceiling_;
}

Lab::Lab(int64_t working_set_bytes) {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  machines_.push_back(std::make_unique<Machine>(1, working_set_bytes));
  if (all > 1) machines_.push_back(std::make_unique<Machine>(all, working_set_bytes));
}

std::string Lab::default_filter() const {
  return fmt::format("^(attend/.*/d64/g4/16384|append/.*/d64|(prefill|gemv|gemm)/.*)/t{}/|^merge/",
                     machines_.back()->threads());
}

std::vector<float> normal_values(int64_t n) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(bits);
  return values;
}

void Rates::report(benchmark::State& state, const char* pass, const char* limit,
                   const char* ratio) const {
  std::vector<double> ratios;
  for (size_t i = 0; i < passes.size(); ++i) ratios.push_back(passes[i] / limits[i]);
  state.counters[pass] = median(passes);
  state.counters[limit] = median(limits);
  state.counters[ratio] = median(ratios);
}

double median(const std::vector<double>& samples) { return summarize(samples).p50.value(); }

}  // namespace kvmark
