#include "bench/record/counters.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvmark {
namespace {

using testing::HasSubstr;

CounterReading reading(EventReading instructions, EventReading cycles) {
  return {instructions, cycles, std::nullopt};
}

TEST(CountersTest, AnEventThatTookTurnsIsScaledToTheWholeTime) {
  const Counts counts = reading({1100, 3000, 1500}, {5000, 3000, 3000}) -
                        reading({100, 1000, 500}, {4000, 1000, 1000});
  EXPECT_DOUBLE_EQ(counts.instructions.value(), 2000) << "1000 in half of the time";
  EXPECT_DOUBLE_EQ(counts.cycles.value(), 1000);
  EXPECT_DOUBLE_EQ(counts.running_share.value(), 0.5) << "of the event that was counted least";
  EXPECT_FALSE(counts.cache_misses.has_value());
}

TEST(CountersTest, AnEventThatNeverRanIsNothing) {
  const Counts counts =
      reading({100, 3000, 500}, {9, 3000, 2}) - reading({100, 1000, 500}, {8, 1000, 1});
  EXPECT_FALSE(counts.instructions.has_value());
  EXPECT_DOUBLE_EQ(counts.cycles.value(), 2000);
  const Counts none = CounterReading{} - CounterReading{};
  EXPECT_FALSE(none.instructions || none.cycles || none.cache_misses || none.running_share);
}

TEST(CountersTest, ReasonsSayWhatToDo) {
  EXPECT_THAT(why_no_counters(EACCES, 4),
              AllOf(HasSubstr("is 4"), HasSubstr("sysctl kernel.perf_event_paranoid=2")));
  EXPECT_THAT(why_no_counters(EPERM, 2), HasSubstr("seccomp"));
  EXPECT_THAT(why_no_counters(EPERM, std::nullopt), HasSubstr("seccomp"));
  EXPECT_THAT(why_no_counters(ENOENT, 2), AllOf(HasSubstr("virtual"), HasSubstr("--count")));
  EXPECT_THAT(why_no_counters(ENOSYS, 2), HasSubstr("kernel"));
  EXPECT_THAT(why_no_counters(EMFILE, 2), HasSubstr("perf_event_open: "));
}

TEST(CountersTest, JsonIsPerStepAndNullWhereNothingWasCounted) {
  Counts counts;
  counts.instructions = 3000;
  counts.running_share = 0.75;
  const auto json = counters_json(counts, 4, "no such counter");
  EXPECT_EQ(json["instructions_per_step"], 750);
  EXPECT_TRUE(json["cycles_per_step"].is_null());
  EXPECT_TRUE(json["cache_misses_per_step"].is_null());
  EXPECT_EQ(json["running_share"], 0.75);
  EXPECT_EQ(json["missing_because"], "no such counter");
  EXPECT_TRUE(counters_json(counts, 4, "")["missing_because"].is_null());
}

// Of the machine that the test runs on: it counts, or it says why not.
TEST(CountersTest, TheMachineCountsOrSaysWhyNot) {
  const HardwareCounters counters;
  const CounterReading before = counters.read();
  for (int i = 0; i < 1000000; ++i) asm volatile("" : : "r"(i));
  const Counts counts = counters.read() - before;
  if (before.instructions) {
    EXPECT_GT(counts.instructions.value(), 1e6);
  } else {
    EXPECT_FALSE(counts.instructions.has_value());
    EXPECT_FALSE(counters.missing_because().empty());
  }
}

}  // namespace
}  // namespace kvmark
