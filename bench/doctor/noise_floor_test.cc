#include "bench/doctor/noise_floor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "bench/gate/ab.h"
#include "bench/gate/procedure.h"
#include "bench/gate/selftest.h"
#include "bench/run/workload_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::HasSubstr;

// Steps of visits that vary by sigma and grow by `drift` from one to the next.
std::vector<double> steps_ms(double sigma, double drift) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<double> steps;
  for (int visit = 0; visit < 400; ++visit) {
    steps.push_back(std::exp(normal(random) + drift * visit));
  }
  return steps;
}

TEST(NoiseFloor, FindsTheSigmaOfVisits) {
  const NoiseFloor floor = noise_of(steps_ms(0.02, 0));
  EXPECT_EQ(floor.visits, 400);
  EXPECT_NEAR(*floor.visit_sigma, 0.02, 0.003);
  EXPECT_NEAR(*floor.sigma_with_drift, 0.02, 0.003);
}

TEST(NoiseFloor, DoesNotTakeADriftForNoise) {
  const NoiseFloor floor = noise_of(steps_ms(0.02, 0.001));
  EXPECT_NEAR(*floor.visit_sigma, 0.02, 0.003);
  EXPECT_GT(*floor.sigma_with_drift, 0.1);
}

TEST(NoiseFloor, NeedsThreeVisits) {
  const std::vector<double> two = {1, 1.1};
  EXPECT_THROW(noise_of(two), LogicError);
}

// Rounds of 25 steps of 5 ms.
constexpr const char* kScriptedWorker = R"(
while read -r request; do
  case $request in
    *prepare*) echo '{"reply":"ready"}' ;;
    *round*)
      steps=9
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do steps=$steps,5; done
      echo "{\"reply\":\"samples\",\"digest\":\"d\",\"itl_ms\":[$steps],\"attend_ms\":[$steps],\"decode_ms\":129,\"tpot_ms\":5}" ;;
  esac
done)";

TEST(NoiseFloor, IsMeasuredInPairsOfVisits) {
  const Binary scripted{"scripted", {"/bin/sh", "-c", kScriptedWorker}};
  const Case c = tiny_case("contiguous", 0, 26);
  const NoiseFloor floor = measure_noise(scripted, c, {.fewest = 2, .most = 3, .budget_s = 60});
  EXPECT_EQ(floor.missing_because, std::nullopt);
  EXPECT_EQ(floor.visits, 6);
  EXPECT_EQ(floor.visit_sigma, 0);
  EXPECT_GT(*floor.worker_start_ms, 0) << "a shell has to start";
  EXPECT_EQ(measure_noise(scripted, c, {.fewest = 2, .most = 3, .budget_s = 0}).visits, 4);
}

TEST(NoiseFloor, SaysWhyThereIsNone) {
  const Case c = tiny_case("contiguous", 0, 26);
  const NoiseFloor floor = measure_noise({"none", {"/bin/false"}}, c);
  EXPECT_EQ(floor.visit_sigma, std::nullopt);
  EXPECT_THAT(*floor.missing_because, HasSubstr("exited with 1"));
}

TEST(SmallestSlowdown, IsTheRulesAtLittleNoise) {
  EXPECT_EQ(smallest_slowdown(0, 24), 0.025);
  // The estimate must reach 2.5 % in 95 % of runs; it has the deviation √(π/3) · √2 · σ / √48
  // (Hodges & Lehmann, 1963).
  EXPECT_NEAR(smallest_slowdown(0.001, 48), 0.025 + 1.645 * 1.0233 * 1.4142 * 0.001 / 6.928, 5e-5);
}

TEST(SmallestSlowdown, GrowsWithNoiseAndShrinksWithPairs) {
  EXPECT_LT(smallest_slowdown(0.01, 48), smallest_slowdown(0.02, 48));
  EXPECT_LT(smallest_slowdown(0.02, 48), smallest_slowdown(0.02, 24));
  EXPECT_LT(smallest_slowdown(kPromisedSigma, 24), 0.05);  // what the gate promises
}

TEST(SmallestSlowdown, IsWhatTheManualSays) {
  std::ifstream file(KVMARK_SOURCE_DIR "/docs/doctor.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const double sigma : {0.005, 0.01, 0.015, 0.02, 0.03, 0.05}) {
    const std::string row =
        fmt::format("| {:.1f} % | {:.1f} % | {:.1f} % |", 100 * sigma,
                    100 * smallest_slowdown(sigma, 24), 100 * smallest_slowdown(sigma, 48));
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/doctor.md: expected " << row;
  }
}

// Against the procedure itself, with all rows slower by so much.
TEST(SmallestSlowdown, IsFoundInNinetyFivePercentOfRuns) {
  constexpr int kRuns = 250, kPairs = 24;
  const ProcedureOptions rules{.confirm_pairs = kPairs, .most_pairs = kPairs};
  for (const double sigma : {0.015, 0.04}) {
    std::mt19937_64 random(2);
    std::normal_distribution<double> difference(smallest_slowdown(sigma, kPairs),
                                                std::sqrt(2.0) * sigma);
    int found = 0;
    for (int run = 0; run < kRuns; ++run) {
      Procedure procedure(kMostGatedRows, rules);
      while (const auto row = procedure.next()) procedure.add(*row, difference(random));
      for (int row = 0; row < kMostGatedRows; ++row) {
        found += procedure.decision(row).finding == Finding::slower;
      }
    }
    EXPECT_NEAR(found / double(kRuns * kMostGatedRows), 0.95, 0.02) << sigma;
  }
}

}  // namespace
}  // namespace kvmark
