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
      kernels_.block(p.data(), 1, 1, kBlock, states.view());
      for (int i = 0; i < kBlock; ++i) {
        for (float& o : states.o) o += p[i] * static_cast<float>(first + i);
      }
    }
    EXPECT_EQ(states.m[0], static_cast<float>(largest));
    EXPECT_NEAR(states.sum(0), total, 2e-6 * total) << spread;
    kernels_.finish(1, states.view());
    EXPECT_NEAR(states.l[0], total, 2e-6 * total) << spread;
    for (float o : states.o) EXPECT_NEAR(o, expected / total, 4e-6 * expected / total) << spread;
  }
}

TEST_P(Softmax, TheExponentialIsRightEverywhere) {
  for (float x = 0; x > -86.9f; x -= 0.0137f) {
    std::vector<float> s(kBlock, kNothing);
    s[0] = 0;
    s[1] = x;
    States states(1);
    kernels_.block(s.data(), 1, 1, kBlock, states.view());
    const double allowed = 3e-7 + 1.2e-7 * std::fabs(double{x});
    ASSERT_NEAR(s[1], std::exp(double{x}), allowed * std::exp(double{x})) << x;
  }
}

TEST_P(Softmax, WhatIsNotVisibleHasProbabilityZero) {
  const int group = 3;
  for (int visible = 1; visible <= kBlock; ++visible) {
    // Two rows: the second sees one position more.
    std::vector<float> s(2 * group * kBlock, 1.0f);
    for (int query = 0; query < 2 * group; ++query) {
      for (int i = visible + query / group; i < kBlock; ++i) {
        s[query * kBlock + i] = i % 2 ? NAN : 100.0f;
      }
      if (visible > 1) s[query * kBlock] = kNothing;
    }
    States states(2 * group);
    kernels_.block(s.data(), 2, group, visible, states.view());
    for (int query = 0; query < 2 * group; ++query) {
      const int seen = std::min(kBlock, visible + query / group);
      EXPECT_EQ(states.m[query], 1.0f);
      EXPECT_EQ(states.sum(query), static_cast<float>(visible > 1 ? seen - 1 : seen));
      for (int i = 0; i < kBlock; ++i) {
        EXPECT_EQ(s[query * kBlock + i], i < seen && (visible == 1 || i > 0) ? 1.0f : 0.0f) << i;
      }
    }
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
    kernels_.block(s.data(), 1, 1, kBlock, states.view());
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
  kernels_.block(s.data(), 1, 1, kBlock, states.view());
  EXPECT_TRUE(std::isnan(states.sum(0)));
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

INSTANTIATE_TEST_SUITE_P(Simd, Softmax, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
