#include "bench/record/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engines/core/check.h"

namespace kvmark {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Summarize, NoSamplesLeavesEverythingOut) {
  const Summary s = summarize({});
  EXPECT_EQ(s.n, 0u);
  EXPECT_FALSE(s.mean || s.stddev || s.mad || s.min || s.p50 || s.p50_ci95 || s.max);
  EXPECT_EQ(s.outliers, 0u);
}

TEST(Summarize, OneSampleHasNoDeviation) {
  const Summary s = summarize(std::vector{7.5});
  EXPECT_EQ(s.mean, 7.5);
  EXPECT_EQ(s.p50, 7.5);
  EXPECT_EQ(s.mad, 0.0);
  EXPECT_FALSE(s.stddev.has_value());
  EXPECT_FALSE(s.p50_ci95.has_value());
}

TEST(Summarize, TwoIdenticalSamplesDeviateByZero) {
  // 0.1 is not exact in binary, so that a one-pass variance would not give 0.
  const Summary s = summarize(std::vector{0.1, 0.1});
  EXPECT_EQ(s.stddev, 0.0);
  EXPECT_EQ(s.mean, 0.1);
}

TEST(Summarize, DeviationIsByNMinusOneAndSurvivesALargeOffset) {
  EXPECT_DOUBLE_EQ(*summarize(std::vector{1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4}).stddev,
                   std::sqrt(5.0 / 3.0));
}

TEST(Summarize, PercentilesInterpolateAndDoNotDependOnOrder) {
  const Summary s = summarize(std::vector{4.0, 1.0, 3.0, 2.0});
  EXPECT_EQ(s.p50, 2.5);
  EXPECT_EQ(s.min, 1.0);
  EXPECT_EQ(s.max, 4.0);
  EXPECT_EQ(s.mad, 1.0);
  EXPECT_NEAR(*summarize(one_to(201)).p99, 199.0, 1e-9);
}

TEST(Summarize, FiguresThatTooFewSamplesCannotCarryAreLeftOut) {
  EXPECT_FALSE(summarize(one_to(19)).p90.has_value());
  EXPECT_TRUE(summarize(one_to(20)).p90.has_value());
  EXPECT_FALSE(summarize(one_to(39)).p95.has_value());
  EXPECT_TRUE(summarize(one_to(40)).p95.has_value());
  EXPECT_FALSE(summarize(one_to(199)).p99.has_value());
  EXPECT_TRUE(summarize(one_to(200)).p99.has_value());
  EXPECT_FALSE(summarize(one_to(5)).p50_ci95.has_value());
  EXPECT_TRUE(summarize(one_to(6)).p50_ci95.has_value());
}

TEST(Summarize, IntervalOfTheMedianTakesTheRanksOfTheBinomialTables) {
  using Interval = std::array<double, 2>;
  EXPECT_EQ(summarize(one_to(6)).p50_ci95, (Interval{1, 6}));
  EXPECT_EQ(summarize(one_to(8)).p50_ci95, (Interval{1, 8}));
  EXPECT_EQ(summarize(one_to(9)).p50_ci95, (Interval{2, 8}));
  EXPECT_EQ(summarize(one_to(10)).p50_ci95, (Interval{2, 9}));
  EXPECT_EQ(summarize(one_to(20)).p50_ci95, (Interval{6, 15}));
  EXPECT_EQ(summarize(one_to(100)).p50_ci95, (Interval{40, 61}));
}

TEST(Summarize, IntervalOfAVeryLongListIsNarrow) {
  const Summary s = summarize(one_to(20000));
  ASSERT_TRUE(s.p50_ci95.has_value());
  // The normal approximation: n/2 ± 1.96 · √n / 2.
  EXPECT_NEAR((*s.p50_ci95)[0], 10000 - 0.98 * std::sqrt(20000.0), 2);
  EXPECT_NEAR((*s.p50_ci95)[1], 10000 + 0.98 * std::sqrt(20000.0), 2);
}

TEST(Summarize, CountsOutliers) {
  std::vector<double> samples{10, 11, 9, 10, 11, 9, 10, 500, 10, -300};
  EXPECT_EQ(summarize(samples).outliers, 2u);
  EXPECT_EQ(summarize(std::vector(10, 3.0)).outliers, 0u);
}

TEST(Summarize, RefusesWhatIsNotFinite) {
  EXPECT_THROW(summarize(std::vector{1.0, std::nan("")}), LogicError);
  EXPECT_THROW(summarize(std::vector{std::numeric_limits<double>::infinity()}), LogicError);
}

TEST(Summarize, JsonHasEveryKeyAndNullForWhatIsLeftOut) {
  EXPECT_EQ(to_json(summarize(std::vector{2.0})).dump(),
            R"({"n":1,"mean":2.0,"stddev":null,"mad":0.0,"min":2.0,"p50":2.0,"p50_ci95":null,)"
            R"("p90":null,"p95":null,"p99":null,"max":2.0,"outliers":0})");
  EXPECT_EQ(to_json(summarize(one_to(6)))["p50_ci95"].dump(), "[1.0,6.0]");
}

TEST(Outliers, AreNamedByTheirPlaceAndCountInEveryFigure) {
  const std::vector<double> samples = {10, 11, 90, 10, 11, 12, -60, 9, 10};
  EXPECT_EQ(outliers(samples), (std::vector<size_t>{2, 6}));
  EXPECT_EQ(summarize(samples).outliers, 2u);
  EXPECT_EQ(summarize(samples).n, 9u);
  EXPECT_EQ(*summarize(samples).max, 90);
  EXPECT_TRUE(outliers({}).empty());
  EXPECT_TRUE(outliers(std::vector{1.0, 1.0, 1.0, 5.0}).empty()) << "no MAD to measure by";
}

TEST(RelativeWidth, IsTheIntervalOverTheMedian) {
  EXPECT_DOUBLE_EQ(*relative_width(summarize(one_to(6))), 5 / 3.5);
  EXPECT_FALSE(relative_width(summarize(one_to(5))).has_value());
  EXPECT_FALSE(relative_width(summarize(std::vector(6, 0.0))).has_value());
}

TEST(FitSlope, FindsTheExponent) {
  std::vector<double> x = one_to(500), linear, square;
  for (double t : x) {
    linear.push_back(3 * t);
    square.push_back(t * t);
  }
  EXPECT_NEAR(fit_slope(x, linear)->exponent, 1, 1e-9);
  EXPECT_NEAR(fit_slope(x, square)->exponent, 2, 1e-9);
  // Between the two where the points are: log 3 / log 2 from 1 to 2, 1 on the way to 4.
  EXPECT_NEAR(fit_slope(std::vector{1.0, 2.0, 4.0}, std::vector{1.0, 3.0, 6.0})->exponent,
              std::log2(6.0) / 2, 1e-9);
}

TEST(FitSlope, IntervalsHoldTheExponent95TimesIn100) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.05);
  for (const size_t n : {3, 5, 12}) {
    const std::vector<double> x = one_to(n);
    int held = 0;
    constexpr int kLists = 2000;
    for (int i = 0; i < kLists; ++i) {
      std::vector<double> y;
      for (double t : x) y.push_back(std::pow(t, 1.5) * std::exp(noise(random)));
      const Slope slope = *fit_slope(x, y);
      held += std::abs(slope.exponent - 1.5) <= *slope.half_width;
    }
    EXPECT_NEAR(held, 0.95 * kLists, 4 * std::sqrt(0.95 * 0.05 * kLists)) << n;
  }
  EXPECT_FALSE(fit_slope(one_to(2), one_to(2))->half_width.has_value()) << "two fit any line";
}

TEST(FitSlope, NeedsTwoPositivePoints) {
  EXPECT_FALSE(fit_slope({}, {}).has_value());
  EXPECT_FALSE(fit_slope(std::vector{4.0}, std::vector{4.0}).has_value());
  EXPECT_FALSE(fit_slope(std::vector{4.0, 4.0}, std::vector{4.0, 5.0}).has_value());
  EXPECT_FALSE(fit_slope(std::vector{3.0, 4.0}, std::vector{0.0, 5.0}).has_value());
  EXPECT_THROW(fit_slope(std::vector{3.0, 4.0}, std::vector{5.0}), LogicError);
}

}  // namespace
}  // namespace kvmark
