#include "bench/run/group_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "bench/record/record.h"
#include "bench/run/fake_worker_testing.h"
#include "bench/run/interrupt.h"
#include "bench/run/run_testing.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

const char* const kA = "contiguous/f32";
const char* const kB = "paged:16/f32";
const char* const kC = "contiguous/f16";

class GroupRunTest : public testing::Test {
 protected:
  GroupRunTest() {
    script_["log"] = folder_ / "requests";
    context_.sampling.rounds = 2;
    context_.folder = folder_.path();
    context_.run_id = "run";
    context_.append = [this](const Json& record) {
      EXPECT_THAT(validate_record(record), IsEmpty());
      rows_.push_back(record);
    };
    context_.warn = [this](const std::string& text) { warnings_.push_back(text); };
  }

  void fault(const std::string& engine, const std::string& at, const std::string& what,
             int index = -1) {
    script_["engines"][engine] = {{"at", at}, {"do", what}};
    if (index >= 0) script_["engines"][engine]["index"] = index;
  }

  // Runs a group of these engines; rows by engine are found with row().
  void run(const std::vector<std::string>& engines) {
    std::vector<Case> cases;
    for (const std::string& engine : engines) cases.push_back(small_case(engine));
    run_cases(cases);
  }
  void run_cases(const std::vector<Case>& cases) {
    context_.worker = fake_worker(script_);
    run_group(cases, context_);
  }

  const Json& row(const std::string& engine) const {
    static const Json none;
    for (const Json& row : rows_) {
      if (row["case"]["engine"] == engine) return row;
    }
    ADD_FAILURE() << "no row for " << engine;
    return none;
  }

  // The engines in the order in which they were asked for rounds, first letters.
  std::string rounds() const {
    std::istringstream log(requests());
    std::string engine, cmd, order;
    while (log >> engine >> cmd) {
      if (cmd == "round") order += engine == kA ? 'A' : engine == kB ? 'B' : 'C';
    }
    return order;
  }

  // A line "ENGINE CMD" each.
  std::string requests() const { return read_text(folder_ / "requests"); }

  ScratchFolder folder_;
  nlohmann::json script_;
  RunContext context_;
  std::vector<Json> rows_;
  std::vector<std::string> warnings_;
};

TEST_F(GroupRunTest, EveryCaseGetsAValidRow) {
  run({kA, kB, kC});
  ASSERT_EQ(rows_.size(), 3u);
  for (const Json& row : rows_) {
    EXPECT_EQ(row["status"], "ok");
    EXPECT_EQ(row["digest"], "d1");
    EXPECT_EQ(row["kernel"], "generic");
    EXPECT_EQ(row["env"]["simd"], "FAKE");
    EXPECT_EQ(row["env"]["blas"], "FakeLake");
    EXPECT_EQ(row["sampling"]["rounds"], 2);
    EXPECT_EQ(row["sampling"]["stop_reason"], "cap");
    EXPECT_EQ(row["sampling"]["interleaved"], true);
    EXPECT_EQ(row["group_run"], rows_[0]["group_run"]);
  }
}

TEST_F(GroupRunTest, TheCaseThatIsTheReferenceMakesIt) {
  run({kC, kA, kB});
  EXPECT_EQ(row(kA)["accuracy"]["loss"]["attend_rel_rms"], 0);
  EXPECT_EQ(row(kB)["accuracy"]["loss"]["attend_rel_rms"], 0.01);
  EXPECT_EQ(row(kC)["accuracy"]["loss"]["attend_rel_rms"], 0.01);
  EXPECT_THAT(requests(), StartsWith(kA + std::string(" prepare"))) << "before the others";
  EXPECT_THAT(requests(), Not(HasSubstr(" reference")));
  EXPECT_EQ(rounds(), "CABBAC") << "the rounds keep the plan's order";
}

TEST_F(GroupRunTest, AnotherWorkerMakesTheReferenceWhereTheCaseCannot) {
  fault(kA, "verify", "kill");
  run({kA, kB});
  EXPECT_EQ(row(kA)["status"], "failed");
  EXPECT_EQ(row(kB)["accuracy"]["loss"]["attend_rel_rms"], 0.01);
  EXPECT_THAT(requests(), HasSubstr(kA + std::string(" reference")));
  rows_.clear();
  script_.erase("engines");
  run({kB, kC});
  EXPECT_EQ(row(kB)["accuracy"]["loss"]["attend_rel_rms"], 0.01);
}

TEST_F(GroupRunTest, RoundsGoForthAndBack) {
  context_.sampling.rounds = 3;
  run({kA, kB, kC});
  EXPECT_EQ(rounds(), "ABCCBAABC");
}

TEST_F(GroupRunTest, TheReferenceFileGoesWithTheGroup) {
  run({kA});
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("requests", "workers.log"));
  }
}

TEST_F(GroupRunTest, ADeadWorkerIsARowAndTheRoundsGoOn) {
  fault(kB, "round", "kill", 1);
  context_.sampling.rounds = 3;
  run({kA, kB, kC});
  EXPECT_EQ(row(kB)["status"], "failed");
  EXPECT_EQ(row(kB)["reason"], "killed by SIGKILL at `round`");
  EXPECT_EQ(row(kA)["status"], "ok");
  EXPECT_EQ(row(kC)["status"], "ok");
  EXPECT_EQ(rounds(), "ABCCBAAC");
  EXPECT_EQ(rows_[0]["case"]["engine"], kB) << "a failed row is written at once";
}

TEST_F(GroupRunTest, WhoWasMeasuredAloneWasNotInterleaved) {
  fault(kB, "prepare", "exit");
  run({kA, kB});
  EXPECT_EQ(row(kA)["status"], "ok");
  EXPECT_EQ(row(kA)["sampling"]["interleaved"], false);
  rows_.clear();
  fault(kB, "round", "kill", 0);
  run({kA, kB});
  EXPECT_EQ(row(kA)["sampling"]["interleaved"], false);
  rows_.clear();
  fault(kB, "round", "kill", 1);
  run({kA, kB});
  EXPECT_EQ(row(kA)["sampling"]["interleaved"], true) << "one turn was";
}

TEST_F(GroupRunTest, EveryWayToFailIsAFailedRow) {
  const std::vector<std::pair<const char*, const char*>> faults = {
      {"prepare", "exit"},    {"prepare", "error"}, {"verify", "babble"}, {"verify", "half"},
      {"round", "shapeless"}, {"round", "chatter"}, {"round", "wrong"},   {"finish", "unclean"}};
  for (const auto& [at, what] : faults) {
    rows_.clear();
    fault(kB, at, what);
    run({kA, kB});
    EXPECT_EQ(row(kB)["status"], "failed") << at << " " << what;
    EXPECT_TRUE(row(kB)["reason"].is_string()) << at << " " << what;
    EXPECT_EQ(row(kA)["status"], "ok") << at << " " << what;
  }
}

TEST_F(GroupRunTest, SilenceIsAFailedRow) {
  fault(kB, "round", "silent");
  context_.patience = {1, 0};
  run({kA, kB});
  EXPECT_THAT(row(kB)["reason"].get<std::string>(), HasSubstr("no answer to `round`"));
  EXPECT_EQ(row(kA)["status"], "ok");
}

TEST_F(GroupRunTest, AnotherDigestVoidsTheRow) {
  fault(kB, "round", "digest", 1);
  run({kA, kB});
  EXPECT_EQ(row(kB)["status"], "invalid");
  EXPECT_THAT(row(kB)["reason"].get<std::string>(), HasSubstr("round 2"));
  EXPECT_TRUE(row(kB)["latency"]["tpot_ms"].is_null());
  EXPECT_TRUE(row(kB)["throughput"]["decode_tok_per_s"].is_null());
  EXPECT_TRUE(row(kB)["work"]["attend_gb_per_s"].is_null());
}

TEST_F(GroupRunTest, AWrongEngineIsNotTimed) {
  fault(kB, "verify", "incorrect");
  run({kA, kB});
  EXPECT_EQ(row(kB)["status"], "invalid");
  EXPECT_THAT(row(kB)["reason"].get<std::string>(), HasSubstr("0.5"));
  EXPECT_EQ(row(kB)["accuracy"]["correct"]["passed"], false);
  EXPECT_TRUE(row(kB)["latency"]["tpot_ms"].is_null());
  EXPECT_EQ(rounds(), "AA");
}

TEST_F(GroupRunTest, AMissedGateIsInvalidButTimed) {
  std::vector<Case> cases{small_case(kA), small_case(kB)};
  cases[0].gate.attend_rel_rms_max = 0.1;
  cases[1].gate.attend_rel_rms_max = 0.001;
  run_cases(cases);
  EXPECT_EQ(row(kA)["status"], "ok");
  EXPECT_EQ(row(kA)["accuracy"]["loss"]["passed"], true);
  EXPECT_EQ(row(kB)["status"], "invalid");
  EXPECT_EQ(row(kB)["reason"], "attend_rel_rms 0.01 misses its gate of ≤ 0.001");
  EXPECT_EQ(row(kB)["accuracy"]["loss"]["passed"], false);
  EXPECT_TRUE(row(kB)["latency"]["tpot_ms"].is_object());
}

TEST_F(GroupRunTest, WithoutReferenceThereIsNoLossAndGatesAreNotPassed) {
  fault(kA, "reference", "kill");
  std::vector<Case> cases{small_case(kB), small_case(kC)};
  cases[1].gate.attend_rel_rms_max = 0.1;
  run_cases(cases);
  EXPECT_EQ(row(kB)["status"], "ok");
  EXPECT_TRUE(row(kB)["accuracy"]["loss"]["attend_rel_rms"].is_null());
  EXPECT_EQ(row(kB)["events"].back()["kind"], "no_reference");
  EXPECT_EQ(row(kC)["status"], "invalid");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("killed by SIGKILL")));
}

TEST_F(GroupRunTest, WhatCannotRunIsSkippedWithTheReason) {
  std::vector<Case> cases{small_case(kA), small_case(kB)};
  cases[1].device = "cuda";
  run_cases(cases);
  EXPECT_EQ(row(kA)["status"], "ok");
  EXPECT_EQ(row(kB)["status"], "skipped");
  EXPECT_THAT(row(kB)["reason"].get<std::string>(), HasSubstr("cuda"));
  EXPECT_TRUE(row(kA)["env"]["started"].is_string());
  EXPECT_TRUE(row(kB)["env"]["started"].is_null());
  EXPECT_EQ(row(kA)["work"]["positions_computed"], 7);
  EXPECT_TRUE(row(kB)["work"]["positions_computed"].is_null());
}

TEST_F(GroupRunTest, TooCostlyCasesAreSkipped) {
  context_.sampling.max_case_s = 0;
  run({kA});
  EXPECT_EQ(row(kA)["status"], "skipped");
  EXPECT_THAT(row(kA)["reason"].get<std::string>(), HasSubstr("max_case_s"));
}

TEST_F(GroupRunTest, WhatDoesNotFitAloneIsSkipped) {
  context_.memory_bytes = 1000;
  run({kA});
  EXPECT_EQ(row(kA)["status"], "skipped");
  EXPECT_THAT(row(kA)["reason"].get<std::string>(), HasSubstr("memory"));
}

TEST_F(GroupRunTest, WavesShareAnAnchor) {
  const int64_t bytes = predict(small_case(kA), 8).total_bytes;
  context_.memory_bytes = bytes * 5 / 2;  // two workers, not three
  run({kA, kB, kC});
  EXPECT_EQ(rounds(), "ABBAACCA");
  EXPECT_EQ(row(kA)["sampling"]["rounds"], 4);
  EXPECT_EQ(row(kC)["sampling"]["rounds"], 2);
  for (const Json& row : rows_) EXPECT_EQ(row["sampling"]["interleaved"], false);
}

TEST_F(GroupRunTest, CtrlCLeavesTheRowsThatAreThere) {
  const InterruptScope interrupts;
  fault(kC, "prepare", "exit");
  fault(kB, "prepare", "silent");
  context_.append = [this](const Json& record) {
    rows_.push_back(record);
    raise(SIGINT);
  };
  EXPECT_THROW(run({kC, kB}), Interrupted);
  EXPECT_EQ(rows_.size(), 1u);
}

TEST(PlanWaves, PacksBesideTheAnchor) {
  const auto shape = [](const std::vector<int64_t>& bytes, std::optional<int64_t> budget) {
    std::string text;
    for (const Wave& wave : plan_waves(bytes, budget)) {
      text += text.empty() ? "" : " | ";
      for (size_t i : wave.cases) text += std::to_string(i);
      if (!wave.with_anchor) text += "!";
    }
    return text;
  };
  EXPECT_EQ(shape({5, 5, 5}, {}), "012");
  EXPECT_EQ(shape({5, 5, 5}, 15), "012");
  EXPECT_EQ(shape({5, 5, 5}, 14), "01 | 02");
  EXPECT_EQ(shape({2, 4, 4, 1}, 7), "01 | 023");
  EXPECT_EQ(shape({5, 9, 3}, 10), "02 | 1!");
}

TEST(StopReason, CapWidthBudgetSingle) {
  Sampling s;
  s.rounds = 10;
  s.target_width = 0.02;
  s.budget_s = 5;
  EXPECT_EQ(stop_reason(s, {}, 0), std::nullopt);
  EXPECT_EQ(stop_reason(s, {}, 9), std::nullopt) << "the first round always runs";
  EXPECT_EQ(stop_reason(s, {1, 1, 1, 1, 1}, 0), std::nullopt) << "5 rounds have no interval";
  EXPECT_EQ(stop_reason(s, {1, 1, 1, 1, 1, 1}, 0), "width");
  EXPECT_EQ(stop_reason(s, {1, 2, 1, 2, 1, 2}, 0), std::nullopt);
  EXPECT_EQ(stop_reason(s, {1, 2, 1, 2, 1, 2}, 5), "budget");
  EXPECT_EQ(stop_reason(s, {1}, 6), "budget");
  EXPECT_EQ(stop_reason(s, std::vector<double>(10, 1.0), 6), "cap");
  s.rounds = 1;
  EXPECT_EQ(stop_reason(s, {1}, 0), "single");
}

}  // namespace
}  // namespace kvmark
