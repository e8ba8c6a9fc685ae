#include "engines/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

class Softmax : public testing::TestWithParam<int64_t> {
 protected:
  const SoftmaxKernels kernels_ = softmax_kernels(GetParam());
};

TEST_P(Softmax, BlockByBlockEqualsAllAtOnce) {
  for (float spread : {1.0f, 30.0f, 1e5f}) {
    std::vector<float> scores(3 * kBlock);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = spread * std::sin(3.7f * static_cast<float>(i));
    }
    float m = kNothing, l = 0, o = 0;
    double largest = kNothing, total = 0, expected = 0;
    for (float score : scores) largest = std::max<double>(largest, score);
    for (size_t i = 0; i < scores.size(); ++i) {
      total += std::exp(scores[i] - largest);
      expected += std::exp(scores[i] - largest) * static_cast<double>(i);
    }
    for (int first = 0; first < 3 * kBlock; first += kBlock) {
      std::vector<float> p(scores.begin() + first, scores.begin() + first + kBlock);
      o *= kernels_.block(p.data(), kBlock, &m, &l);
      for (int i = 0; i < kBlock; ++i) o += p[i] * static_cast<float>(first + i);
    }
    EXPECT_EQ(m, static_cast<float>(largest));
    EXPECT_NEAR(l, total, 2e-6 * total) << spread;
    EXPECT_NEAR(o, expected, 2e-6 * expected) << spread;
  }
}

TEST_P(Softmax, WhatIsNotVisibleHasProbabilityZero) {
  for (int visible = 1; visible <= kBlock; ++visible) {
    std::vector<float> s(kBlock, 1.0f);
    for (int i = visible; i < kBlock; ++i) s[i] = i % 2 ? NAN : 100.0f;
    if (visible > 1) s[0] = kNothing;
    float m = kNothing, l = 0;
    EXPECT_EQ(kernels_.block(s.data(), visible, &m, &l), 1.0f);
    EXPECT_EQ(m, 1.0f);
    EXPECT_EQ(l, static_cast<float>(visible > 1 ? visible - 1 : 1));
    for (int i = 0; i < kBlock; ++i) {
      EXPECT_EQ(s[i], i < visible && (visible == 1 || i > 0) ? 1.0f : 0.0f) << i;
    }
  }
}

TEST_P(Softmax, ABlockOfNothingLeavesTheState) {
  for (float before : {kNothing, 2.5f}) {
    std::vector<float> s(kBlock, kNothing);
    float m = before, l = before == kNothing ? 0.0f : 3.0f;
    const float l_before = l;
    EXPECT_EQ(kernels_.block(s.data(), kBlock, &m, &l), 1.0f);
    EXPECT_EQ(m, before);
    EXPECT_EQ(l, l_before);
    for (float p : s) EXPECT_EQ(p, 0.0f);
  }
}

TEST_P(Softmax, ScaleTouchesItsFloatsOnly) {
  for (int n : {0, 1, 5, 16, 37}) {
    std::vector<float> x(n + 1, 3.0f);
    kernels_.scale(x.data(), n, 0.5f);
    for (int i = 0; i < n; ++i) EXPECT_EQ(x[i], 1.5f);
    EXPECT_EQ(x[n], 3.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, Softmax, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
