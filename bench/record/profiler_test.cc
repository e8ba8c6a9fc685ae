#include "bench/record/profiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr Phase kAll[] = {Phase::other, Phase::qkv, Phase::append, Phase::attend,
                          Phase::out,   Phase::ffn, Phase::lm_head};

void nap(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

int64_t sum(const StepProfiler& profiler) {
  int64_t total = 0;
  for (Phase phase : kAll) total += profiler.phase_ns(phase);
  return total;
}

void two_layers(StepProfiler& profiler) {
  for (int layer = 0; layer < 2; ++layer) {
    profiler.enter_layer(layer);
    profiler.enter(Phase::qkv);
    profiler.enter(Phase::append);
    profiler.enter(Phase::attend);
    nap(2);
    profiler.enter(Phase::out);
    profiler.enter(Phase::ffn);
  }
  profiler.enter(Phase::lm_head);
}

TEST(StepProfiler, PhasesAddUpToTheStepExactly) {
  StepProfiler profiler;
  profiler.begin_step("prefill");
  nap(1);
  two_layers(profiler);
  profiler.end_step();
  EXPECT_EQ(sum(profiler), profiler.step_ns());
  EXPECT_GE(profiler.phase_ns(Phase::attend), 4'000'000);
  EXPECT_GE(profiler.phase_ns(Phase::other), 1'000'000);  // before the first phase
  EXPECT_LT(profiler.phase_ns(Phase::attend), profiler.step_ns());
}

TEST(StepProfiler, AStepStartsFromNothing) {
  StepProfiler profiler;
  profiler.begin_step();
  profiler.enter(Phase::attend);
  nap(2);
  profiler.end_step();
  profiler.begin_step();
  profiler.end_step();
  EXPECT_EQ(profiler.phase_ns(Phase::attend), 0);
  EXPECT_EQ(sum(profiler), profiler.step_ns());
}

TEST(StepProfiler, IgnoresCallsOutsideAStep) {
  StepProfiler profiler;
  profiler.enter(Phase::ffn);
  profiler.enter_layer(0);
  EXPECT_EQ(sum(profiler), 0);
  EXPECT_THROW(profiler.end_step(), LogicError);
  profiler.begin_step();
  EXPECT_THROW(profiler.begin_step(), LogicError);
}

TEST(StepProfiler, ProfileIsTheMeanOfTheKeptSteps) {
  StepProfiler profiler;
  EXPECT_TRUE(profiler.profile()["attend_ms"].is_null());
  double attend_ms = 0;
  for (int step = 0; step < 3; ++step) {
    profiler.begin_step();
    two_layers(profiler);
    profiler.end_step();
    if (step == 0) continue;  // a settle step
    profiler.keep();
    attend_ms += static_cast<double>(profiler.phase_ns(Phase::attend)) * 1e-6;
  }
  EXPECT_EQ(profiler.kept(), 2);
  EXPECT_EQ(profiler.profile().size(), static_cast<size_t>(kPhases));
  EXPECT_NEAR(profiler.profile()["attend_ms"].get<double>(), attend_ms / 2, 1e-9);
}

}  // namespace
}  // namespace kvmark
