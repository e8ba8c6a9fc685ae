#include "bench/gate/rank_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// W ≤ critical has at most this probability, and W ≤ critical + 1 more. Critical values as in
// R. L. McCornack, Extended tables of the Wilcoxon matched pair signed rank statistic, Journal of
// the American Statistical Association 60 (1965), 864–871.
TEST(SignedRankDistribution, HasThePublishedCriticalValues) {
  struct Row {
    int n, at_5, at_2_5, at_1, at_0_5;  // one-sided levels in percent; −1: there is none
  };
  for (const Row& row : {Row{5, 0, -1, -1, -1},
                         {8, 5, 3, 1, 0},
                         {10, 10, 8, 5, 3},
                         {15, 30, 25, 19, 15},
                         {20, 60, 52, 43, 37},
                         {25, 100, 89, 76, 68},
                         {30, 151, 137, 120, 109},
                         {50, 466, 434, 397, 373}}) {
    const std::vector<double> p = signed_rank_distribution(row.n);
    for (const auto& [level, critical] :
         {std::pair{0.05, row.at_5}, {0.025, row.at_2_5}, {0.01, row.at_1}, {0.005, row.at_0_5}}) {
      if (critical >= 0) {
        EXPECT_LE(p[critical], level) << row.n << " at " << level;
      }
      EXPECT_GT(p[critical + 1], level) << row.n << " at " << level;
    }
  }
}

TEST(SignedRankDistribution, IsThatOfAllSigns) {
  for (int n = 1; n <= 10; ++n) {
    std::vector<int> counts(n * (n + 1) / 2 + 1);
    for (int signs = 0; signs < 1 << n; ++signs) {
      int w = 0;
      for (int rank = 1; rank <= n; ++rank) w += signs >> (rank - 1) & 1 ? rank : 0;
      ++counts[w];
    }
    const std::vector<double> p = signed_rank_distribution(n);
    ASSERT_EQ(p.size(), counts.size());
    double sum = 0;
    for (size_t w = 0; w < counts.size(); ++w) {
      sum += counts[w];
      EXPECT_NEAR(p[w], sum / (1 << n), 1e-12) << n << ", " << w;
    }
  }
}

TEST(SignedRankDistribution, HoldsForHundreds) {
  const std::vector<double> p = signed_rank_distribution(300);
  EXPECT_NEAR(p.back(), 1, 1e-12);
  EXPECT_TRUE(std::is_sorted(p.begin(), p.end()));
  const double mean = 300 * 301 / 4.0, sigma = std::sqrt(300 * 301 * 601 / 24.0);
  EXPECT_NEAR(p[static_cast<int>(mean + 1.645 * sigma)], 0.95, 1e-3) << "nearly normal";
}

TEST(HodgesLehmann, IsTheMedianOfAllPairsMeans) {
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector{3.0}), 3);
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector{1.0, 4.0}), 2.5);
  // 1, 2, 10: averages 1, 1.5, 2, 5.5, 6, 10.
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector{10.0, 1.0, 2.0}), 3.75);
  EXPECT_THROW(hodges_lehmann({}), LogicError);
}

// Depression scores before and after a treatment, Hollander & Wolfe, Nonparametric Statistical
// Methods, table 3.1: the estimate is −0.46, and (−0.786, −0.010) covers with 96 %.
TEST(HodgesLehmann, GivesTheFiguresOfTheTextbook) {
  const double before[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const double after[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> changes;
  for (int i = 0; i < 9; ++i) changes.push_back(after[i] - before[i]);
  EXPECT_NEAR(hodges_lehmann(changes), -0.46, 1e-9);
  const auto interval = centre_interval(changes, 0.96);
  ASSERT_TRUE(interval);
  EXPECT_NEAR((*interval)[0], -0.786, 1e-9);
  EXPECT_NEAR((*interval)[1], -0.010, 1e-9);
}

TEST(Bounds, NeedEnoughValues) {
  const std::vector<double> four{1, 2, 3, 4}, five{1, 2, 3, 4, 5};
  EXPECT_FALSE(lower_bound({}, 0.95));
  EXPECT_FALSE(lower_bound(four, 0.95)) << "2^-4 is more than 5 %";
  EXPECT_EQ(lower_bound(five, 0.95), 1.0) << "the smallest of all";
  EXPECT_EQ(upper_bound(five, 0.95), 5.0);
  EXPECT_THROW(lower_bound(five, 0.3), LogicError);
}

TEST(Bounds, CoverAsOftenAsTheySay) {
  std::mt19937_64 random(1);
  std::cauchy_distribution<double> wild(7, 1);  // not even a mean
  int below = 0;
  const int tries = 4000;
  for (int i = 0; i < tries; ++i) {
    std::vector<double> values(12);
    for (double& value : values) value = wild(random);
    below += *lower_bound(values, 0.95) <= 7;
  }
  // Exact: P(W ≥ 18 of 78) = 0.954; 3.5 standard errors either way.
  EXPECT_NEAR(below / double(tries), 1 - signed_rank_distribution(12)[17], 0.012);
}

TEST(ProportionInterval, IsTheExactOne) {
  // None of n: 1 − (α/2)^(1/n).
  EXPECT_EQ(proportion_interval(0, 20, 0.95)[0], 0);
  EXPECT_NEAR(proportion_interval(0, 20, 0.95)[1], 1 - std::pow(0.025, 1 / 20.0), 1e-9);
  EXPECT_NEAR(proportion_interval(94, 94, 0.95)[0], std::pow(0.025, 1 / 94.0), 1e-9);
  EXPECT_EQ(proportion_interval(94, 94, 0.95)[1], 1);
  // Clopper & Pearson's own chart, 8 of 20 at 95 %: 0.19 to 0.64.
  EXPECT_NEAR(proportion_interval(8, 20, 0.95)[0], 0.1912, 5e-4);
  EXPECT_NEAR(proportion_interval(8, 20, 0.95)[1], 0.6395, 5e-4);
}

}  // namespace
}  // namespace kvmark
