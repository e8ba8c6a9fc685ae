#include "bench/doctor/noise_floor.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "bench/gate/ab.h"
#include "bench/gate/procedure.h"
#include "bench/gate/rank_statistics.h"
#include "bench/gate/resampling.h"
#include "bench/record/clock.h"
#include "bench/record/stats.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr uint64_t kSeed = 1;  // of the environments' lengths and of simulated noise
constexpr double kPower = 0.95;
constexpr int kRuns = 1000;  // simulated; the slowdown is then known to about a thirtieth of itself

}  // namespace

// Every two neighbours are a pair, so that few visits say as much as they can.
NoiseFloor noise_of(std::span<const double> steps_ms) {
  check(steps_ms.size() >= 3, "a noise floor of {} visits: expected at least 3", steps_ms.size());
  std::vector<double> logs;
  RecordedRounds pairs;
  for (const double ms : steps_ms) {
    logs.push_back(std::log(ms));
    if (logs.size() > 1) pairs.push_back({logs.back() - logs[logs.size() - 2]});
  }
  NoiseFloor floor;
  floor.visits = static_cast<int>(logs.size());
  floor.visit_sigma = visit_sigma(pairs, 0);
  floor.sigma_with_drift = summarize(logs).stddev;
  return floor;
}

NoiseFloor measure_noise(const Binary& binary, const Case& c, const PairCount& count) {
  VisitOptions options;
  options.log_path = "/dev/null";
  VisitPairs pairs(binary, binary, options, kSeed);
  std::vector<double> steps_ms, starts_ms;
  const int64_t start = now_ns();
  const auto another = [&](int taken) {
    const bool time_left = ms_from_ns(now_ns() - start) < 1e3 * count.budget_s;
    return taken < count.fewest || (taken < count.most && time_left);
  };
  try {
    for (int taken = 0; another(taken); ++taken) {
      const VisitPairs::Pair pair = pairs.take(c, taken);
      for (const bool base : {pair.base_first, !pair.base_first}) {
        const Visit& visit = base ? pair.base : pair.now;
        steps_ms.push_back(visit.step_ms);
        starts_ms.push_back(visit.start_ms);
      }
    }
  } catch (const SideFailed& e) {
    return {.missing_because = e.what()};
  }
  NoiseFloor floor = noise_of(steps_ms);
  floor.repeated = pairs.repeats();
  floor.worker_start_ms = summarize(starts_ms).p50;
  return floor;
}

// The estimate and the bound follow a shift of all differences. So each run has a slowdown from
// which on it finds it, and the answer is a quantile of those.
double smallest_slowdown(double visit_sigma, int pairs) {
  const ProcedureOptions rules;
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  const auto differences = [&](int n) {
    std::vector<double> d(n);
    for (double& x : d) x = std::numbers::sqrt2 * visit_sigma * normal(random);
    return d;
  };
  std::vector<double> found_from(kRuns);
  for (double& from : found_from) {
    const double screened = hodges_lehmann(differences(rules.screen_pairs));
    const std::vector<double> confirmed = differences(pairs);
    const auto bound = lower_bound(confirmed, 1 - rules.risk / kMostGatedRows);
    check(bound.has_value(), "{} pairs carry no bound", pairs);
    from = std::max({rules.keep - screened, rules.slower - hodges_lehmann(confirmed),
                     rules.surely_slower - *bound});
  }
  const auto quantile = found_from.begin() + static_cast<int>(kPower * kRuns);
  std::nth_element(found_from.begin(), quantile, found_from.end());
  return *quantile;
}

}  // namespace kvmark
