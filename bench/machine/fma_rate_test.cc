#include "bench/machine/fma_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

TEST(FmaKernel, ComputesEveryChainOnEverySimdTarget) {
  for (const int64_t target : simd_targets()) {
    const FmaKernel kernel = fma_kernel(target);
    ASSERT_GT(kernel.chains, 0);
    const auto chains = static_cast<float>(kernel.chains);
    EXPECT_EQ(kernel.run(0, 0.5f, 1), 0);
    EXPECT_EQ(kernel.run(1, 0.5f, 1), chains);
    EXPECT_EQ(kernel.run(3, 0.5f, 1), 1.75f * chains);  // 1, 1.5, 1.75
    EXPECT_EQ(kernel.run(7, 1, 2), 14 * chains);
    EXPECT_EQ(kernel.run(4, 2, 1), 15 * chains);
  }
}

TEST(FmaRate, IsARate) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<double> rates = {fma_gflop_per_s(pool)};
    for (const int64_t target : simd_targets()) rates.push_back(fma_gflop_per_s(pool, target));
    for (const double rate : rates) {
      EXPECT_TRUE(std::isfinite(rate));
      EXPECT_GT(rate, 0);
    }
  }
}

}  // namespace
}  // namespace kvmark
