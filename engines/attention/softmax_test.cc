#include "engines/attention/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

class Softmax : public testing::TestWithParam<int64_t> {
 protected:
  const SoftmaxKernels kernels_ = softmax_kernels(GetParam());

  // One block, as the driver takes it.
  void take(std::vector<float>& s, const SoftmaxStates& states) const {
    const int queries = static_cast<int>(s.size()) / kBlock;
    if (kernels_.exceeds(s.data(), queries, states)) kernels_.raise(s.data(), queries, states);
    kernels_.block(s.data(), queries, states);
  }
};

// The states of some queries with outputs of kDim channels.
struct States {
  static constexpr int kDim = 37;
  explicit States(int queries) : m(queries, kNothing), l(queries * kTileRows), o(queries * kDim) {}
  SoftmaxStates view() { return {m.data(), l.data(), o.data(), kDim}; }
  float sum(int query) const {
    return std::accumulate(l.begin() + query * kTileRows, l.begin() + (query + 1) * kTileRows,
                           0.0f);
  }
  std::vector<float> m, l, o;
};

TEST_P(Softmax, BlockByBlockEqualsAllAtOnce) {
  for (float spread : {1.0f, 30.0f, 1e5f}) {
    std::vector<float> scores(3 * kBlock);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = spread * std::sin(3.7f * static_cast<float>(i));
    }
    double largest = kNothing, total = 0, expected = 0;
    for (float score : scores) largest = std::max<double>(largest, score);
    for (size_t i = 0; i < scores.size(); ++i) {
      total += std::exp(scores[i] - largest);
      expected += std::exp(scores[i] - largest) * static_cast<double>(i);
    }
    States states(1);
    for (int first = 0; first < 3 * kBlock; first += kBlock) {
      std::vector<float> p(scores.begin() + first, scores.begin() + first + kBlock);
      take(p, states.view());
      for (int i = 0; i < kBlock; ++i) {
        for (float& o : states.o) o += p[i] * static_cast<float>(first + i);
      }
    }
    EXPECT_LE(states.m[0], largest);
    EXPECT_GE(states.m[0] + 8, largest);
    total *= std::exp(largest - states.m[0]);
    expected *= std::exp(largest - states.m[0]);
    EXPECT_NEAR(states.sum(0), total, 3e-6 * total) << spread;
    kernels_.finish(1, states.view());
    EXPECT_NEAR(states.l[0], total, 3e-6 * total) << spread;
    for (float o : states.o) EXPECT_NEAR(o, expected / total, 4e-6 * expected / total) << spread;
  }
}

TEST_P(Softmax, TheExponentialIsRightEverywhere) {
  for (float x = 0; x > -86.9f; x -= 0.0137f) {
    std::vector<float> s(kBlock, kNothing);
    s[0] = 0;
    s[1] = x;
    States states(1);
    take(s, states.view());
    const double allowed = 3e-7 + 1.2e-7 * std::fabs(double{x});
    ASSERT_NEAR(s[1], std::exp(double{x}), allowed * std::exp(double{x})) << x;
  }
}

TEST_P(Softmax, TheReferenceRisesOnlyWhereAScoreExceedsItByEight) {
  // Of the second query's states nothing is seen yet, the third one's reference is far above.
  for (float above : {-3.0f, 0.0f, 7.99f, 8.01f, 50.0f}) {
    States states(3);
    states.m = {2.0f, kNothing, 90.0f};
    states.l[0] = 3.0f;
    states.o.assign(3 * States::kDim, 4.0f);
    std::vector<float> s(3 * kBlock, kNothing);
    s[17] = 2.0f + above;
    s[2 * kBlock + 3] = 80.0f;
    const bool rises = above > 8;
    ASSERT_EQ(kernels_.exceeds(s.data(), 3, states.view()), rises) << above;
    kernels_.raise(s.data(), 3, states.view());
    EXPECT_EQ(states.m, (std::vector<float>{rises ? s[17] : 2.0f, kNothing, 90.0f}));
    const float factor = rises ? std::exp(-above) : 1.0f;
    EXPECT_NEAR(states.l[0], 3.0f * factor, 3e-5f * factor);
    EXPECT_NEAR(states.o[States::kDim - 1], 4.0f * factor, 4e-5f * factor);
    EXPECT_EQ(states.o[States::kDim], 4.0f);
    EXPECT_EQ(states.o[2 * States::kDim], 4.0f);
  }
  States nothing_seen(1);
  std::vector<float> s(kBlock, kNothing);
  EXPECT_FALSE(kernels_.exceeds(s.data(), 1, nothing_seen.view()));
  s[31] = -1e30f;
  EXPECT_TRUE(kernels_.exceeds(s.data(), 1, nothing_seen.view()));
}

TEST_P(Softmax, ScoresAboveTheReferenceAreRightToo) {
  States states(1);
  states.m[0] = 1.0f;
  std::vector<float> s(kBlock);
  for (int i = 0; i < kBlock; ++i) s[i] = 1.0f + 0.25f * static_cast<float>(i);
  const std::vector<float> scores = s;
  kernels_.block(s.data(), 1, states.view());
  for (int i = 0; i < kBlock; ++i) {
    const double expected = std::exp(double{scores[i]} - 1);
    EXPECT_NEAR(s[i], expected, 1.3e-6 * expected) << i;
  }
}

TEST_P(Softmax, ABlockOfNothingLeavesTheState) {
  for (float before : {kNothing, 2.5f}) {
    std::vector<float> s(kBlock, kNothing);
    States states(1);
    states.m[0] = before;
    states.l[0] = before == kNothing ? 0.0f : 3.0f;
    states.o.assign(States::kDim, 7.0f);
    const auto l = states.l;
    take(s, states.view());
    EXPECT_EQ(states.m[0], before);
    EXPECT_EQ(states.l, l);
    for (float o : states.o) EXPECT_EQ(o, 7.0f);
    for (float p : s) EXPECT_EQ(p, 0.0f);
  }
}

TEST_P(Softmax, NaNComesThrough) {
  std::vector<float> s(kBlock, 1.0f);
  s[5] = NAN;
  States states(1);
  take(s, states.view());
  EXPECT_TRUE(std::isnan(states.sum(0)));

  // In a later block too, and through all that follows.
  States later(1);
  std::vector<float> fine(kBlock, 1.0f);
  take(fine, later.view());
  s.assign(kBlock, 1.0f);
  s[31] = NAN;
  take(s, later.view());
  EXPECT_TRUE(std::isnan(s[31]));
  kernels_.finish(1, later.view());
  EXPECT_TRUE(std::isnan(later.l[0]));
  AttentionState total{1.0f, 2.0f};
  std::vector<float> o(States::kDim, 1.0f);
  kernels_.merge(total, o.data(), {later.m[0], later.l[0]}, later.o.data(), States::kDim);
  EXPECT_TRUE(std::isnan(total.l));
  EXPECT_TRUE(std::isnan(o[0]));
}

TEST_P(Softmax, FinishDividesWhatWasSeen) {
  States states(2);
  states.l[0] = 4.0f;
  states.o.assign(2 * States::kDim, 6.0f);
  kernels_.finish(2, states.view());
  EXPECT_EQ(states.l[0], 4.0f);
  EXPECT_EQ(states.l[kTileRows], 0.0f);
  for (int d = 0; d < States::kDim; ++d) {
    EXPECT_EQ(states.o[d], 1.5f);
    EXPECT_EQ(states.o[States::kDim + d], 6.0f);
  }
}

TEST_P(Softmax, MergingEmptyStatesChangesNothing) {
  AttentionState empty{kNothing, 0};
  std::vector<float> zeros(3, 0.0f);
  AttentionState a = empty;
  std::vector<float> o_a = zeros;
  kernels_.merge(a, o_a.data(), empty, zeros.data(), 3);
  EXPECT_EQ(a.m, kNothing);
  EXPECT_EQ(a.l, 0);
  EXPECT_EQ(o_a, zeros);

  const AttentionState some{2.5f, 3.0f};
  const std::vector<float> o_some = {1, 2, 3};
  kernels_.merge(a, o_a.data(), some, o_some.data(), 3);
  EXPECT_EQ(a.m, some.m);
  EXPECT_EQ(a.l, some.l);
  EXPECT_EQ(o_a, o_some);
  kernels_.merge(a, o_a.data(), empty, zeros.data(), 3);
  EXPECT_EQ(a.m, some.m);
  EXPECT_EQ(a.l, some.l);
  EXPECT_EQ(o_a, o_some);
}

TEST_P(Softmax, MergingGivesTheSoftmaxOfBothParts) {
  // Scores 1 and 200 against 201: e^(score − m), by hand.
  AttentionState a{200.0f, static_cast<float>(1 + std::exp(-199.0))};
  std::vector<float> o_a(States::kDim), o_b(States::kDim);
  for (int d = 0; d < States::kDim; ++d) {
    o_a[d] = static_cast<float>(d);
    o_b[d] = static_cast<float>(100 - 3 * d);
  }
  const std::vector<float> before = o_a;
  kernels_.merge(a, o_a.data(), {201.0f, 1.0f}, o_b.data(), States::kDim);
  const double weight = std::exp(-1.0);
  EXPECT_EQ(a.m, 201.0f);
  EXPECT_NEAR(a.l, 1 + weight, 1e-6);
  for (int d = 0; d < States::kDim; ++d) {
    EXPECT_NEAR(o_a[d], (before[d] * weight + o_b[d]) / (1 + weight), 1e-4) << d;
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, Softmax, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
