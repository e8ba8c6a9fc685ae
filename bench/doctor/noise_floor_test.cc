#include "bench/doctor/noise_floor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "bench/run/workload_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::HasSubstr;

constexpr VisitCount kAll = {.fewest = 3, .most = 400, .budget_s = 60};

// A machine whose steps vary by sigma and grow by `drift` from visit to visit.
std::function<NoiseVisit()> machine(double sigma, double drift) {
  return [=, random = std::mt19937(1), visits = 0]() mutable {
    std::normal_distribution<double> normal(0, sigma);
    return NoiseVisit{std::exp(normal(random) + drift * visits++), 0};
  };
}

TEST(NoiseFloor, FindsTheSigmaOfVisits) {
  const NoiseFloor floor = measure_noise(machine(0.02, 0), kAll);
  EXPECT_EQ(floor.visits, 400);
  EXPECT_EQ(floor.repeated, 0);
  EXPECT_NEAR(*floor.visit_sigma, 0.02, 0.003);
  EXPECT_NEAR(*floor.sigma_with_drift, 0.02, 0.003);
}

TEST(NoiseFloor, DoesNotTakeADriftForNoise) {
  const NoiseFloor floor = measure_noise(machine(0.02, 0.001), kAll);
  EXPECT_NEAR(*floor.visit_sigma, 0.02, 0.003);
  EXPECT_GT(*floor.sigma_with_drift, 0.1);
}

TEST(NoiseFloor, RepeatsDisturbedVisitsButNotForEver) {
  int visits = 0;
  const NoiseFloor floor = measure_noise(
      [&] {
        ++visits;
        return NoiseVisit{1.0, visits <= 3 ? 0.05 : 0.01};
      },
      {.fewest = 16, .most = 16, .budget_s = 60});
  EXPECT_EQ(visits, 19);
  EXPECT_EQ(floor.visits, 16);
  EXPECT_EQ(floor.repeated, 3);
  EXPECT_EQ(floor.visit_sigma, 0);

  visits = 0;
  const NoiseFloor busy = measure_noise(
      [&] {
        ++visits;
        return NoiseVisit{1.0, 0.5};
      },
      {.fewest = 16, .most = 16, .budget_s = 60});
  EXPECT_EQ(visits, 20);
  EXPECT_EQ(busy.repeated, 4);
}

TEST(NoiseFloor, StopsWhenItsTimeIsUp) {
  EXPECT_EQ(measure_noise(machine(0.02, 0), {.fewest = 5, .most = 400, .budget_s = 0}).visits, 5);
  EXPECT_THROW(measure_noise(machine(0.02, 0), {.fewest = 2}), LogicError);
}

TEST(NoiseFloor, SaysWhyThereIsNone) {
  const NoiseFloor floor = measure_noise([]() -> NoiseVisit { throw WorkerFailed("it died"); });
  EXPECT_EQ(floor.visit_sigma, std::nullopt);
  EXPECT_EQ(floor.missing_because, "it died");
}

// Rounds of 25 steps that take 5 ms, of which 15 ms went elsewhere.
constexpr const char* kScriptedWorker = R"(
while read -r request; do
  case $request in
    *prepare*) echo '{"reply":"ready"}' ;;
    *round*)
      steps=1,9,9
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do steps=$steps,5; done
      echo "{\"reply\":\"samples\",\"itl_ms\":[$steps],\"decode_ms\":129,\"probes\":{\"run_delay_ms\":10,\"steal_ms\":5}}" ;;
  esac
done)";

TEST(NoiseVisitTest, RunsRoundsUntilThereAreStepsAndTimeEnough) {
  const NoiseVisit v =
      run_visit({"/bin/sh", "-c", kScriptedWorker}, tiny_case("contiguous", 0, 26));
  EXPECT_EQ(v.step_ms, 5);
  EXPECT_DOUBLE_EQ(v.disturbed, 30.0 / 258);  // of two rounds
}

TEST(NoiseVisitTest, NeedsAWorkerAndSteps) {
  EXPECT_THROW(run_visit({"/nonexistent"}, tiny_case("contiguous", 0, 26)), WorkerFailed);
  EXPECT_THROW(run_visit({"/bin/false"}, tiny_case("contiguous", 0, 26)), WorkerFailed);
  EXPECT_THROW(run_visit({"/bin/sh", "-c", kScriptedWorker}, tiny_case("contiguous", 0, 1)),
               LogicError);
}

// With the quantiles of a table of the normal distribution: one row that needs no screen's luck.
TEST(SmallestSlowdown, IsTheRulesAtLittleNoise) {
  EXPECT_EQ(smallest_slowdown(0, 24), 0.025);
  // The estimate's deviation is √(π/3) · √2 · 0.001 / √48; it must reach 2.5 % in 95 % of runs.
  EXPECT_NEAR(smallest_slowdown(0.001, 48), 0.025 + 1.6449 * 1.0233 * 1.41421 * 0.001 / 6.9282,
              1e-6);
}

TEST(SmallestSlowdown, GrowsWithNoiseAndShrinksWithPairs) {
  EXPECT_LT(smallest_slowdown(0.01, 48), smallest_slowdown(0.02, 48));
  EXPECT_LT(smallest_slowdown(0.02, 48), smallest_slowdown(0.02, 24));
  EXPECT_LT(smallest_slowdown(kFitVisitSigma, 24), 0.05);  // what the gate promises
}

TEST(SmallestSlowdown, IsWhatTheManualSays) {
  std::ifstream file(KVMARK_SOURCE_DIR "/docs/doctor.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const double sigma : {0.005, 0.01, 0.015, 0.02, 0.03, 0.05}) {
    EXPECT_THAT(manual, HasSubstr(fmt::format("| {:.1f} % | {:.1f} % | {:.1f} % |", 100 * sigma,
                                              100 * smallest_slowdown(sigma, 24),
                                              100 * smallest_slowdown(sigma, 48))));
  }
}

double hodges_lehmann(const std::vector<double>& d) {
  std::vector<double> walsh;
  for (size_t i = 0; i < d.size(); ++i) {
    for (size_t j = i; j < d.size(); ++j) walsh.push_back((d[i] + d[j]) / 2);
  }
  const auto middle = walsh.begin() + walsh.size() / 2;
  std::nth_element(walsh.begin(), middle, walsh.end());
  return *middle;
}

// The formula against the rules played through on made-up pairs.
TEST(SmallestSlowdown, IsFoundInNinetyFivePercentOfRuns) {
  constexpr int kRuns = 3000, kPairs = 24;
  for (const double sigma : {0.015, 0.04}) {
    const double slowdown = smallest_slowdown(sigma, kPairs);
    std::mt19937 random(1);
    std::normal_distribution<double> difference(slowdown, std::sqrt(2.0) * sigma);
    const auto estimate = [&](int pairs) {
      std::vector<double> d(pairs);
      for (double& x : d) x = difference(random);
      return hodges_lehmann(d);
    };
    // 3.2272: of the normal distribution at 1 − 0.005/8.
    const double bound = 3.2272 * 1.0233 * std::sqrt(2.0) * sigma / std::sqrt(kPairs);
    int found = 0;
    for (int run = 0; run < kRuns; ++run) {
      if (estimate(8) < 0.015) continue;
      const double hl = estimate(kPairs);
      found += hl >= 0.025 && hl - bound > 0.005;
    }
    EXPECT_NEAR(found / double{kRuns}, 0.95, 0.015) << sigma;
  }
}

}  // namespace
}  // namespace kvmark
