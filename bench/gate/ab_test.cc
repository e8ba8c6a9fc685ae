#include "bench/gate/ab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench/record/record.h"
#include "bench/run/fake_worker_testing.h"
#include "bench/run/run_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using Json = nlohmann::ordered_json;

const char* const kA = "contiguous/f32";
const char* const kB = "paged:16/f32";

// Two builds whose workers are scripted: rows A and B, visits of two rounds.
class AbTest : public testing::Test {
 protected:
  AbTest() {
    request_.folder = folder_ / "ab";
    request_.visit.min_steps = 6;
    request_.visit.min_steps_s = 0;
    plan("contiguous, paged", "[4]");
  }

  void plan(const std::string& engines, const std::string& prompt_len, int gen_len = 4) {
    request_.config = folder_ / "plan.yaml";
    std::ofstream(request_.config)
        << "name: one\nmodel: {preset: seed-gqa}\nengines: [" << engines
        << "]\nworkload: {level: " << (gen_len > 1 ? "attention" : "model")
        << ", prompt_len: " << prompt_len << ", gen_len: " << gen_len
        << ", max_seq_len: 64}\nthreads: 1\n";
  }

  nlohmann::json& base(const std::string& engine) { return base_["engines"][engine]; }
  nlohmann::json& now(const std::string& engine) { return now_["engines"][engine]; }

  // The exit code that the comparison stands for.
  ExitCode go(bool strict = false) {
    request_.base = {"old", fake_worker(base_)};
    request_.now = {"young", fake_worker(now_)};
    comparison_ = ab(request_, err_);
    return comparison_ ? exit_code_of(*comparison_, strict) : kExitInterrupted;
  }

  const CaseComparison& row(const std::string& engine) const {
    static const CaseComparison none;
    for (const CaseComparison& c : comparison_->cases) {
      if (c.spec["engine"] == engine) return c;
    }
    ADD_FAILURE() << "no row for " << engine;
    return none;
  }
  const MetricComparison& metric(const std::string& engine, const std::string& name) const {
    static const MetricComparison none;
    for (const MetricComparison& m : row(engine).metrics) {
      if (m.metric == name) return m;
    }
    ADD_FAILURE() << "no " << name << " of " << engine;
    return none;
  }
  Json file() const { return Json::parse(read_text(folder_ / "ab/ab.json")); }

  ScratchFolder folder_;
  nlohmann::json base_ = {{"engines", nlohmann::json::object()}}, now_ = base_;
  AbRequest request_;
  std::ostringstream err_;
  std::optional<Comparison> comparison_;
};

TEST_F(AbTest, EqualBuildsAreFine) {
  EXPECT_EQ(go(true), kExitFine);
  EXPECT_THAT(comparison_->cases, SizeIs(2));
  EXPECT_EQ(metric(kA, "latency.itl_ms.p50").verdict, Verdict::same);
  EXPECT_EQ(metric(kB, "latency.itl_ms.p99").verdict, Verdict::shown);
  EXPECT_THAT(comparison_->base, HasSubstr("old"));
  EXPECT_THAT(comparison_->now, HasSubstr("young"));
}

TEST_F(AbTest, KeepsTheRecordsAndEveryPair) {
  go();
  for (const char* side : {"base", "new"}) {
    const auto rows = read_records(folder_ / "ab/" + side + "/records.jsonl").records;
    ASSERT_THAT(rows, SizeIs(2));
    EXPECT_EQ(rows[0]["status"], "ok");
    EXPECT_TRUE(rows[0]["accuracy"]["correct"]["passed"].get<bool>());
  }
  const Json ab = file();
  ASSERT_THAT(ab["rows"], SizeIs(2));
  EXPECT_EQ(ab["interrupted"], false);
  EXPECT_THAT(ab["rows"][0]["pairs"], SizeIs(8));
  EXPECT_EQ(ab["rows"][0]["pairs"][0]["first"], "base");
  EXPECT_EQ(ab["rows"][0]["pairs"][1]["first"], "new");
  EXPECT_EQ(ab["rows"][0]["pairs"][1]["base"]["steps"], 6);
  EXPECT_EQ(ab["rows"][0]["decision"]["finding"], "same");
}

TEST_F(AbTest, ASlowerRowIsConfirmedAndRed) {
  now(kB)["tpot"] = 2.2;
  EXPECT_EQ(go(), kExitRegression);
  const MetricComparison& slower = metric(kB, "latency.itl_ms.p50");
  EXPECT_EQ(slower.verdict, Verdict::worse);
  EXPECT_NEAR(*slower.change, 0.1, 0.001);
  EXPECT_NEAR(*slower.base, 2.0, 0.01);
  EXPECT_NEAR(*slower.now, 2.2, 0.01);
  EXPECT_THAT(slower.note, HasSubstr("24 pairs of the confirmation"));
  EXPECT_EQ(metric(kA, "latency.itl_ms.p50").verdict, Verdict::same);
  EXPECT_THAT(file()["rows"][1]["pairs"], SizeIs(8 + 24));
  EXPECT_EQ(file()["rows"][1]["pairs"][8]["stage"], "confirm");
}

TEST_F(AbTest, AFasterRowIsBetter) {
  now(kB)["tpot"] = 1.8;
  EXPECT_EQ(go(true), kExitFine);
  EXPECT_EQ(metric(kB, "latency.itl_ms.p50").verdict, Verdict::better);
}

TEST_F(AbTest, WhatIsUndecidedCountsOnlyWhenStrict) {
  request_.procedure.undecided = -1;  // every row may be slower than that
  EXPECT_EQ(go(false), kExitFine);
  EXPECT_EQ(metric(kA, "latency.itl_ms.p50").verdict, Verdict::undecided);
  EXPECT_EQ(exit_code_of(*comparison_, true), kExitUndecided);
}

TEST_F(AbTest, ARowThatDiesInTheNewBuildIsFailedAtOnce) {
  now(kA) = {{"at", "verify"}, {"do", "kill"}};
  EXPECT_EQ(go(), kExitFailed);
  EXPECT_EQ(row(kA).base_status, "ok");
  EXPECT_EQ(row(kA).status, "failed");
  EXPECT_THAT(row(kA).reason, HasSubstr("SIGKILL"));
  EXPECT_THAT(file()["rows"], SizeIs(0)) << "no times are taken";
}

TEST_F(AbTest, AnIncorrectRowIsInvalidAtOnce) {
  now(kA) = {{"at", "verify"}, {"do", "incorrect"}};
  EXPECT_EQ(go(), kExitInvalid);
  EXPECT_EQ(row(kA).status, "invalid");
}

TEST_F(AbTest, AFatterCacheIsRedAtOnce) {
  now(kB)["live_bytes"] = 1575;
  EXPECT_EQ(go(), kExitRegression);
  EXPECT_EQ(metric(kB, "memory.kv_live_bytes").verdict, Verdict::worse);
  EXPECT_THAT(file()["rows"], SizeIs(0));
}

TEST_F(AbTest, ADeathInATimedVisitIsAFailedRow) {
  now(kA) = {{"at", "round"}, {"index", 1}, {"do", "kill"}};  // verified visits have one round
  EXPECT_EQ(go(), kExitFailed);
  EXPECT_EQ(row(kA).status, "failed");
  EXPECT_EQ(row(kB).status, "ok");
  EXPECT_EQ(metric(kB, "latency.itl_ms.p50").verdict, Verdict::same) << "the others go on";
  EXPECT_EQ(file()["rows"][0]["decision"]["finding"], "dropped");
}

TEST_F(AbTest, AVisitThatComputesSomethingElseIsInvalid) {
  now(kA)["timed_digest"] = "d2";  // of workers that were not asked to verify
  EXPECT_EQ(go(), kExitInvalid);
  EXPECT_EQ(row(kA).status, "invalid");
  EXPECT_THAT(row(kA).reason, HasSubstr("d2"));
}

TEST_F(AbTest, ARoundThatComputesSomethingElseIsInvalid) {
  now(kA) = {{"at", "round"}, {"index", 1}, {"do", "digest"}};  // the second of a visit
  EXPECT_EQ(go(), kExitInvalid);
  EXPECT_EQ(row(kA).status, "invalid");
}

TEST_F(AbTest, ARowThatTheBaseLosesIsUndecided) {
  base(kA) = {{"at", "round"}, {"index", 1}, {"do", "kill"}};
  EXPECT_EQ(go(), kExitFine) << "no fault of the new build";
  EXPECT_EQ(exit_code_of(*comparison_, true), kExitUndecided);
  EXPECT_EQ(row(kA).base_status, "failed");
  EXPECT_THAT(row(kA).reason, HasSubstr("in the base"));
  EXPECT_EQ(metric(kA, "latency.itl_ms.p50").verdict, Verdict::undecided);
}

TEST_F(AbTest, NothingIsDecidedWhereTheBaseLosesEveryRow) {
  base(kA) = {{"at", "round"}, {"index", 1}, {"do", "kill"}};
  base(kB)["timed_digest"] = "d2";
  EXPECT_EQ(go(), kExitUndecided);
  EXPECT_EQ(row(kB).base_status, "invalid");
}

TEST_F(AbTest, RowsThatAreNotTimedAreCounted) {
  base(kA) = {{"at", "verify"}, {"do", "incorrect"}};
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(comparison_->notes, testing::Contains(HasSubstr("1 of 2 rows not timed: each is")));
}

TEST_F(AbTest, CasesThatTheBaseDoesNotKnowAreListed) {
  base(kB) = {{"at", "prepare"}, {"do", "unknown"}};
  EXPECT_EQ(go(true), kExitFine);
  EXPECT_THAT(comparison_->cases, SizeIs(1));
  ASSERT_THAT(comparison_->one_sided, SizeIs(1));
  EXPECT_FALSE(comparison_->one_sided[0].in_base);
  EXPECT_THAT(comparison_->one_sided[0].label, HasSubstr("paged"));
  EXPECT_THAT(comparison_->one_sided[0].reason, HasSubstr("no such engine"));
}

TEST_F(AbTest, ACaseThatTheNewBuildNoLongerKnowsHasVanished) {
  now(kB)["case_id"] = "0123456789abcdef";
  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(exit_code_of(*comparison_, true), kExitUndecided);
  ASSERT_THAT(comparison_->one_sided, SizeIs(1));
  EXPECT_TRUE(comparison_->one_sided[0].in_base);
}

TEST_F(AbTest, ACaseThatNeitherBuildKnowsIsNoDifference) {
  for (auto* side : {&base(kB), &now(kB)}) *side = {{"at", "prepare"}, {"do", "unknown"}};
  EXPECT_EQ(go(true), kExitFine);
  EXPECT_THAT(comparison_->one_sided, SizeIs(0));
  EXPECT_THAT(comparison_->notes, testing::Contains(HasSubstr("neither build knows paged")));
}

TEST_F(AbTest, NothingInCommonIsUndecided) {
  for (const char* engine : {kA, kB}) base(engine) = {{"at", "prepare"}, {"do", "unknown"}};
  EXPECT_EQ(go(), kExitUndecided);
}

TEST_F(AbTest, OnlyTheFirstRowsAreTimed) {
  plan("contiguous", "1-9+1");
  request_.procedure.screen_pairs = 5;
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(comparison_->cases, SizeIs(9));
  EXPECT_THAT(file()["rows"], SizeIs(kMostGatedRows));
  EXPECT_THAT(comparison_->notes,
              testing::Contains(HasSubstr("1 of 9 rows not timed: each comes")));
}

TEST_F(AbTest, ARowWithoutDecodeStepsIsComparedExactly) {
  plan("contiguous", "[4]", 1);
  now(kA)["tpot"] = 4.0;
  EXPECT_EQ(go(), kExitUndecided) << "no time was taken";
  EXPECT_THAT(file()["rows"], SizeIs(0));
  EXPECT_THAT(comparison_->notes, testing::Contains(HasSubstr("has no decode steps")));
  EXPECT_THAT(comparison_->cases.at(0).metrics, testing::Not(testing::IsEmpty()));
}

TEST_F(AbTest, CtrlCKeepsWhatWasMeasured) {
  now(kB) = {{"at", "round"}, {"index", 1}, {"do", "interrupt"}};
  EXPECT_EQ(go(), kExitInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("interrupted"));
  EXPECT_EQ(file()["interrupted"], true);
  EXPECT_THAT(file()["rows"][0]["pairs"], SizeIs(1)) << "the pair before it";
  EXPECT_THAT(read_records(folder_ / "ab/new/records.jsonl").records, SizeIs(2));
}

TEST_F(AbTest, KeepsItsComparisonAndNamesThatAreNoText) {
  now(kB)["live_bytes"] = 1575;
  request_.base = {"old \xff", fake_worker(base_)};
  request_.now = {"young", fake_worker(now_)};
  ASSERT_TRUE(ab(request_, err_));
  EXPECT_EQ(file()["base"], "old \uFFFD");
  EXPECT_EQ(file()["comparison"]["exit_code"], kExitRegression);
}

TEST_F(AbTest, AnErrorLeavesWhatIsThere) {
  std::filesystem::create_directories(folder_ / "ab/new");
  std::filesystem::create_symlink("/nonexistent/file", folder_ / "ab/new/records.jsonl");
  EXPECT_THROW(go(), RuntimeError);
  EXPECT_EQ(file()["failed"], true);
  EXPECT_THAT(read_records(folder_ / "ab/base/records.jsonl").records, SizeIs(2));
}

TEST_F(AbTest, AFolderIsNotUsedTwice) {
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THROW(go(), UsageError);
}

}  // namespace
}  // namespace kvmark
