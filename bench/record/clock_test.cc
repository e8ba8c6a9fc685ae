#include "bench/record/clock.h"

#include <gtest/gtest.h>

namespace kvmark {
namespace {

TEST(Clock, NeverGoesBack) {
  int64_t last = now_ns();
  for (int i = 0; i < 100000; ++i) {
    const int64_t now = now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

// A loop of reads cannot take less than its reads do, and time is told in whole nanoseconds.
TEST(Clock, KnowsWhatItCosts) {
  const ClockFigures figures = measure_clock();
  EXPECT_GT(figures.overhead_ns, 0);
  EXPECT_LT(figures.overhead_ns, 1e6);
  EXPECT_GE(figures.resolution_ns, 1);
  EXPECT_LT(figures.resolution_ns, 1e9);
}

TEST(Clock, GivesMilliseconds) { EXPECT_DOUBLE_EQ(ms_from_ns(1500000), 1.5); }

}  // namespace
}  // namespace kvmark
