#include "bench/doctor/harness_cost.h"

#include <gtest/gtest.h>

#include "bench/plan/plan.h"
#include "bench/run/workload_testing.h"

namespace kvmark {
namespace {

TEST(HarnessCost, IsHeldAgainstTheQuickstart) {
  const Plan plan = load_plan(KVMARK_SOURCE_DIR "/configs/quickstart.yaml", {});
  std::string quickstart;
  for (const Case& c : plan.groups.at(0).cases) {
    if (c.engine.name() == "contiguous/f32") quickstart = case_id(c);
  }
  EXPECT_EQ(case_id(quickstart_case(plan.groups[0].cases[0].threads)), quickstart);
}

// The decoder and the engine enter five phases a layer.
TEST(HarnessCost, IsMeasuredInSteps) {
  Case c = tiny_case("contiguous", 0, 20);
  const HarnessCost two = measure_harness_cost(c);
  c.model.layers = 5;
  const HarnessCost five = measure_harness_cost(c);
  EXPECT_EQ(five.clock_reads - two.clock_reads, 3 * 5);
  EXPECT_GT(two.clock_reads, 2 * 5);
  EXPECT_GT(two.step_ms, 0);
  EXPECT_LE(two.share_ci95[0], two.share);
  EXPECT_GE(two.share_ci95[1], two.share);
}

}  // namespace
}  // namespace kvmark
