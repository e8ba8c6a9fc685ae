#include "engines/policies/capacity.h"

#include <gtest/gtest.h>

#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(StopCapacity, TakesEverythingAtOnce) {
  const auto capacity = stop_capacity(1000);
  EXPECT_EQ(capacity(0), 1000);
  EXPECT_EQ(capacity(1000), 1000);
}

TEST(GrowCapacity, GrowsByTheFactorUpToTheLimit) {
  const auto capacity = grow_capacity(1000, 2);
  EXPECT_EQ(capacity(0), 64);
  EXPECT_EQ(capacity(64), 64);
  EXPECT_EQ(capacity(65), 128);
  EXPECT_EQ(capacity(500), 512);
  EXPECT_EQ(capacity(513), 1000);
  EXPECT_EQ(grow_capacity(40, 2)(0), 40);
}

TEST(GrowCapacity, HoldsTheRowsForEveryFactor) {
  for (const double factor : {1.001, 1.5, 3.7, 64.0}) {
    const auto capacity = grow_capacity(3000, factor);
    int last = 0;
    for (int rows = 0; rows <= 3000; ++rows) {
      ASSERT_GE(capacity(rows), rows) << factor;
      ASSERT_GE(capacity(rows), last) << factor;
      ASSERT_LE(capacity(rows), 3000) << factor;
      last = capacity(rows);
    }
  }
}

TEST(GrowCapacity, RefusesAFactorThatDoesNotGrow) {
  EXPECT_THROW(grow_capacity(100, 1), LogicError);
}

}  // namespace
}  // namespace kvmark
