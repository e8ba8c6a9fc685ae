#include "bench/record/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Draw = std::function<double(std::mt19937_64&)>;

std::vector<double> drawn(int n, const Draw& draw, std::mt19937_64& random) {
  std::vector<double> values(n);
  for (double& value : values) value = draw(random);
  return values;
}

// How often `says` is true of `lists` lists of n draws.
double rate(int lists, int n, const Draw& draw, bool (*says)(std::span<const double>)) {
  std::mt19937_64 random(1);
  int calls = 0;
  for (int i = 0; i < lists; ++i) calls += says(drawn(n, draw, random));
  return static_cast<double>(calls) / lists;
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>(10, 0.5)(random); }
double log_normal(std::mt19937_64& random) {
  return std::lognormal_distribution<double>(0, 1)(random);
}
double uniform(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(9, 11)(random);
}
// Mostly quick, with a tail to one side, as steps are.
double skewed(std::mt19937_64& random) {
  return 10 + std::exponential_distribution<double>(1)(random);
}
// A machine with two speeds 10 % apart, 40 % of the rounds at the slower one.
double two_speeds(std::mt19937_64& random) {
  const bool slow = std::bernoulli_distribution(0.4)(random);
  return std::normal_distribution<double>(slow ? 11 : 10, 0.1)(random);
}

TEST(Dip, OfListsThatCanBeWorkedOutByHand) {
  EXPECT_DOUBLE_EQ(dip(std::vector{3.0}), 0.5);
  EXPECT_DOUBLE_EQ(dip(std::vector(8, 2.0)), 1.0 / 16) << "equal samples have one mode";
  std::vector<double> even(20);
  std::iota(even.begin(), even.end(), 1.0);
  EXPECT_NEAR(dip(even), 1.0 / 40, 1e-12) << "the least that 20 samples can have";
  // Two heaps of 50 at 0 and 1: any single mode is off by a quarter, less one step of the heaps'
  // own.
  std::vector<double> heaps;
  for (int i = 0; i < 50; ++i) heaps.insert(heaps.end(), {i * 1e-6, 1 + i * 1e-6});
  EXPECT_NEAR(dip(heaps), 0.25, 0.005);
}

TEST(Dip, DependsOnNeitherOrderNorScale) {
  std::mt19937_64 random(2);
  std::vector<double> values = drawn(31, two_speeds, random);
  const double before = dip(values);
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = 3 - 7 * value;
  EXPECT_NEAR(dip(values), before, 1e-12);
}

TEST(TwoModes, AreSeldomSeenInWhatHasOne) {
  for (const int n : {10, 11, 15, 20, 30, 60, 100}) {
    EXPECT_LE(rate(2000, n, normal, has_two_modes), 0.01) << n;
    EXPECT_LE(rate(2000, n, log_normal, has_two_modes), 0.01) << n;
    EXPECT_LE(rate(2000, n, skewed, has_two_modes), 0.01) << n;
    // The hardest: its own rate is the 1 % of the bound, give or take three deviations of 2,000.
    EXPECT_LE(rate(2000, n, uniform, has_two_modes), 0.017) << n;
  }
}

TEST(TwoModes, AreSeenWhereTheyAre) {
  EXPECT_GE(rate(500, 20, two_speeds, has_two_modes), 0.5);
  EXPECT_GE(rate(500, 30, two_speeds, has_two_modes), 0.75);
  EXPECT_GE(rate(500, 60, two_speeds, has_two_modes), 0.95);
}

TEST(TwoModes, NeedTenRoundsAndADistanceThatMatters) {
  std::vector<double> rounds;
  for (int i = 0; i < 5; ++i) rounds.insert(rounds.end(), {10 + i * 1e-3, 11 + i * 1e-3});
  EXPECT_TRUE(has_two_modes(rounds));
  EXPECT_FALSE(has_two_modes(std::span(rounds).first(9)));
  for (double& ms : rounds) ms = 10 + 0.1 * (ms - 10);  // 1 % apart
  EXPECT_FALSE(has_two_modes(rounds));
}

TEST(Drift, IsSeldomSeenWithoutOne) {
  for (const int n : {6, 7, 9, 12, 20, 50}) {
    EXPECT_LE(rate(2000, n, normal, drifts), 0.015) << n;
    EXPECT_LE(rate(2000, n, log_normal, drifts), 0.015) << n;
  }
}

TEST(Drift, IsAMatterOfOrderAndSize) {
  std::vector<double> rounds = {100, 101, 102, 103, 104, 105};
  EXPECT_TRUE(drifts(rounds));
  EXPECT_FALSE(drifts(std::span(rounds).first(5))) << "five in order are 1 in 60";
  std::swap(rounds[1], rounds[4]);
  EXPECT_FALSE(drifts(rounds));
  EXPECT_FALSE(drifts(std::vector{100.0, 100.1, 100.2, 100.3, 100.4, 100.5})) << "too small";
  EXPECT_TRUE(drifts(std::vector{10.0, 9.0, 8.0, 7.0, 6.0, 5.0})) << "to either side";
  EXPECT_FALSE(drifts(std::vector(20, 3.0)));
  EXPECT_FALSE(drifts({}));
}

// A second of two busy threads, nothing else.
Probes quiet() {
  Probes p;
  p.wall_ms = 1000;
  p.cpu_ms = 2000;
  p.run_delay_ms = 5;
  p.minor_faults = 100;
  p.major_faults = 0;
  p.migrations = 2;
  p.machine_busy_ms = 2050;
  p.steal_ms = 10;
  p.throttled_ms = 0;
  p.thermal_throttles = 0;
  p.lowest_core_ghz = 3.9;
  p.highest_core_ghz = 4.0;
  return p;
}

TEST(Disturbances, AQuietRowHasNone) {
  EXPECT_THAT(disturbances(quiet(), std::vector{1.0, 1.01, 0.99}), IsEmpty());
  EXPECT_THAT(disturbances(Probes(), {}), IsEmpty()) << "what is unknown is no reason";
}

TEST(Disturbances, EachIsSaidAloneAndFromItsOwnFigure) {
  const auto of = [](auto set) {
    Probes p = quiet();
    set(p);
    return disturbances(p, {});
  };
  EXPECT_THAT(of([](Probes& p) { p.run_delay_ms = 21; }),
              ElementsAre("threads had to wait for a core"));
  EXPECT_THAT(of([](Probes& p) { p.steal_ms = 30; }),
              ElementsAre("the host gave cores to others (steal)"));
  EXPECT_THAT(of([](Probes& p) { p.throttled_ms = 21; }),
              ElementsAre("the control group's CPU quota stopped it"));
  EXPECT_THAT(of([](Probes& p) { p.machine_busy_ms = 2110; }),
              ElementsAre("other processes computed beside it"));
  EXPECT_THAT(of([](Probes& p) { p.migrations = 101; }),
              ElementsAre("threads were moved between cores often"));
  EXPECT_THAT(of([](Probes& p) { p.minor_faults = 10001; }),
              ElementsAre("many page faults: its memory had not settled"));
  EXPECT_THAT(of([](Probes& p) { p.major_faults = 1; }), ElementsAre("page faults read from disk"));
  EXPECT_THAT(of([](Probes& p) { p.thermal_throttles = 1; }),
              ElementsAre("the processor was throttled for its heat"));
  EXPECT_THAT(of([](Probes& p) { p.lowest_core_ghz = 3.79; }),
              ElementsAre("the core's frequency moved"));
  EXPECT_THAT(disturbances(quiet(), std::vector{1.0, 1.1, 1.2, 1.3, 1.4, 1.5}),
              ElementsAre("its rounds drift"));
}

TEST(Disturbances, OneTickOfAShortRowIsNone) {
  Probes p = quiet();
  p.wall_ms = 50;
  p.cpu_ms = 100;
  p.run_delay_ms = 0;
  p.migrations = p.minor_faults = 0;
  p.steal_ms = 20;
  p.machine_busy_ms = 120;
  EXPECT_THAT(disturbances(p, {}), IsEmpty());
}

}  // namespace
}  // namespace kvmark
