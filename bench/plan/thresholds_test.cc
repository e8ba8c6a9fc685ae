#include "bench/plan/thresholds.h"

#include <gmock/gmock.h>

#include "bench/plan/test_files.h"

namespace kvmark {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST(Thresholds, OfAPlanAreKeptWithTheRunAndReadBack) {
  const TempFolder folder;
  const Plan plan = load_plan(
      folder.write("p.yaml", "thresholds: {latency.tpot_ms: 0.05, latency.itl_ms.p99: 0.5}\n"), {});
  EXPECT_EQ(plan.as_run["thresholds"]["latency.tpot_ms"], 0.05);
  EXPECT_EQ(plan.as_run["thresholds"]["latency.itl_ms.p99"], 0.5);
  const Plan again = load_plan(folder.write("as_run.json", plan.as_run.dump(2)), {});
  EXPECT_EQ(again.as_run, plan.as_run);
}

TEST(Thresholds, BySetGoOverThePlan) {
  const Plan plan = plan_of("thresholds: {latency.tpot_ms: 0.05}\n",
                            {{"--set", "thresholds.latency.tpot_ms", "0.2"},
                             {"--set", "thresholds.memory.kv_peak_bytes", "0.01"}});
  EXPECT_EQ(plan.as_run["thresholds"].dump(),
            R"({"latency.tpot_ms":0.2,"memory.kv_peak_bytes":0.01})");
}

TEST(Thresholds, OfAPlanAreNoPartOfTheCase) {
  EXPECT_EQ(case_id(first(plan_of("thresholds: {latency.tpot_ms: 0.05}\n"))),
            case_id(first(plan_of("name: x\n"))));
}

TEST(Thresholds, ErrorsNameThePlaceAndTheNearestMetric) {
  EXPECT_THAT(plan_error("thresholds:\n  latency.tpot: 0.1\n"),
              StartsWith("plan.yaml:2:3: unknown metric `latency.tpot` (did you mean "
                         "`latency.tpot_ms`?)"));
  EXPECT_THAT(plan_error("thresholds: {latency: {tpot_ms: 0.1}}\n"),
              StartsWith("plan.yaml:1:14: unknown metric `latency`"));
  EXPECT_THAT(plan_error("thresholds: {latency.tpot_ms: 5 %}\n"),
              HasSubstr("thresholds.latency.tpot_ms: expected a number from 0 to 10, got `5 %`"));
  EXPECT_THAT(plan_error("thresholds: {latency.tpot_ms: 11}\n"), HasSubstr("out of range"));
  EXPECT_THAT(plan_error("thresholds: 0.1\n"), HasSubstr("`thresholds` is a section"));
  EXPECT_THAT(plan_error("name: x\n", {{"--set", "thresholds.latency.tpot", "0.1"}}),
              StartsWith("--set thresholds.latency.tpot: unknown metric `latency.tpot`"));
}

TEST(ThresholdFile, IsAMapOfMetrics) {
  const TempFolder folder;
  EXPECT_THAT(read_thresholds(folder.write("t.yaml",
                                           "latency.tpot_ms: 0.05\n"
                                           "memory.kv_peak_bytes: 0\n")),
              UnorderedElementsAre(Pair("latency.tpot_ms", 0.05), Pair("memory.kv_peak_bytes", 0)));
  try {
    read_thresholds(folder.write("bad.yaml", "latency.tpot_ms: 0.05\nlatency.tpott_ms: 1\n"));
    ADD_FAILURE() << "no such metric";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("bad.yaml:2:1: unknown metric `latency.tpott_ms` (did you "
                                    "mean `latency.tpot_ms`?)"));
  }
  EXPECT_THROW(read_thresholds(folder.path("none.yaml")), UsageError);
}

}  // namespace
}  // namespace kvmark
