#include "bench/run/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/record/record.h"
#include "bench/run/fake_worker_testing.h"
#include "bench/run/list.h"
#include "bench/run/progress.h"
#include "bench/run/run_folder.h"
#include "bench/run/run_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

class RunTest : public testing::Test {
 protected:
  RunTest() {
    script_["log"] = folder_ / "requests";
    request_.configs = {write_plan("one", "contiguous, paged, fp16")};
    request_.folder = folder_ / "deep/er/run";
    request_.report = false;
  }

  std::string write_plan(const std::string& name, const std::string& engines) {
    const std::string path = folder_ / (name + ".yaml");
    std::ofstream(path) << "name: " << name << "\nmodel: {preset: seed-gqa}\nengines: [" << engines
                        << "]\nworkload: {prompt_len: 4, gen_len: 4, max_seq_len: 64}\n"
                        << "sampling: {rounds: 2}\nthreads: 1\n";
    return path;
  }

  void fault(const std::string& at, const std::string& what) {
    script_["engines"]["paged:16/f32"] = {{"at", at}, {"do", what}};
  }

  ExitCode go() {
    out_.str("");
    err_.str("");
    request_.worker = fake_worker(script_);
    std::filesystem::remove(folder_ / "requests");
    return run(request_, out_, err_);
  }

  std::vector<Json> file() const { return read_records(records()).records; }
  std::string records() const { return request_.folder + "/records.jsonl"; }
  std::vector<std::string> statuses() const {
    std::vector<std::string> found;
    for (const Json& row : latest_rows(file())) found.push_back(row["status"]);
    return found;
  }
  // How many workers were started, the reference's included.
  int workers() const {
    std::istringstream log(read_text(folder_ / "requests"));
    int count = 0;
    for (std::string line; std::getline(log, line);) {
      count += line.find(" prepare") != std::string::npos;
    }
    return count;
  }

  ScratchFolder folder_;
  nlohmann::json script_;
  RunRequest request_;
  std::ostringstream out_, err_;
};

TEST_F(RunTest, MakesTheFolderAndPrintsTheTable) {
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(statuses(), ElementsAre("ok", "ok", "ok"));
  EXPECT_EQ(file()[0]["case"]["engine"], "contiguous/f32") << "rows stand in the plan's order";
  EXPECT_THAT(out_.str(), HasSubstr("paged"));
  const Json plan = Json::parse(read_text(request_.folder + "/plan.json"));
  EXPECT_EQ(plan["run_id"], file()[0]["run_id"]);
  EXPECT_EQ(plan["plans"].size(), 1u);
}

TEST_F(RunTest, TheTableKeepsThePlansOrder) {
  script_["engines"]["contiguous/f32"] = {{"at", "round"}, {"do", "kill"}};
  go();
  EXPECT_EQ(file()[0]["case"]["engine"], "contiguous/f32") << "failed, so written first";
  script_.erase("engines");
  request_.resume = true;
  request_.configs.insert(request_.configs.begin(), write_plan("two", "compressed"));
  go();
  EXPECT_LT(out_.str().find("compressed"), out_.str().find("paged"));
}

TEST_F(RunTest, RowsAreReadInThePlansOrderWhateverEndedFirst) {
  fault("prepare", "kill");
  go();
  ASSERT_EQ(file()[0]["case"]["engine"], "paged:16/f32") << "it ended first";
  const auto engines = [this] {
    std::vector<std::string> names;
    for (const Json& row : read_run(records()).rows) names.push_back(row["case"]["engine"]);
    return names;
  };
  EXPECT_THAT(engines(), ElementsAre("contiguous/f32", "paged:16/f32", "contiguous/f16"));
  std::ofstream(request_.folder + "/plan.json") << "{";  // a plan that cannot be read is none
  EXPECT_THROW(engines(), UsageError);
  std::filesystem::remove(request_.folder + "/plan.json");  // then as they are
  EXPECT_THAT(engines(), ElementsAre("paged:16/f32", "contiguous/f32", "contiguous/f16"));
}

TEST_F(RunTest, NeverOverwritesARun) {
  go();
  const std::string before = read_text(records());
  EXPECT_THROW(go(), UsageError);
  EXPECT_EQ(read_text(records()), before);
}

TEST_F(RunTest, AFileInTheWayIsAUsageError) {
  request_.folder = folder_ / "one.yaml/run";
  EXPECT_THROW(go(), UsageError);
}

TEST_F(RunTest, SeveralPlansShareTheFolder) {
  request_.configs.push_back(write_plan("two", "compressed"));
  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(file().size(), 4u);
}

TEST_F(RunTest, EqualCasesRunOnce) {
  request_.configs = {write_plan("one", "contiguous, paged"), write_plan("two", "paged, fp16")};
  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(file().size(), 3u);
  EXPECT_THAT(err_.str(), HasSubstr("the plans hold 1 case a second time"));
  request_.dry_run = true;
  request_.configs[1] = request_.configs[0];
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(out_.str(), HasSubstr("\n2 cases, "));
}

TEST_F(RunTest, ADryRunOfOneCaseCountsIt) {
  request_.dry_run = true;
  request_.configs = {write_plan("one", "contiguous")};
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(out_.str(), HasSubstr("\n1 case, "));
}

TEST_F(RunTest, ANameThatNoFolderCanHaveIsRefusedBeforeAnythingIsMade) {
  std::string deep;
  while (deep.size() < 4096) deep += "folder/";
  for (const std::string& name : {std::string("\xff"), std::string(256, 'x'), deep}) {
    request_.folder = folder_ / "made/" + name;
    try {
      go();
      ADD_FAILURE() << name;
    } catch (const UsageError& e) {
      EXPECT_THAT(e.what(), testing::StartsWith("-o "));
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "made"));
  }
}

TEST_F(RunTest, ResumeRefusesRowsOfOthersBeforeAnythingRuns) {
  go();
  const std::string rows = read_text(records()), plan = read_text(request_.folder + "/plan.json");
  request_.resume = true;
  request_.configs = {write_plan("two", "compressed")};
  for (const std::string& bad : {std::string("{\"a\":1}\n"), std::string("garbage\n")}) {
    std::ofstream(records(), std::ios::trunc) << bad << rows;
    EXPECT_THROW(go(), UsageError) << bad;
    EXPECT_THROW(read_run(records()), UsageError) << bad;
    EXPECT_EQ(workers(), 0);
    EXPECT_EQ(read_text(request_.folder + "/plan.json"), plan) << "nothing was touched";
  }
}

TEST_F(RunTest, AFolderInAFilesPlaceIsRefused) {
  request_.resume = true;
  for (const char* name : {"/records.jsonl", "/workers.log"}) {
    std::filesystem::create_directories(request_.folder + name);
    EXPECT_THROW(go(), UsageError) << name;
    EXPECT_EQ(workers(), 0);
    std::filesystem::remove_all(request_.folder);
  }
}

TEST_F(RunTest, ARunToExportHoldsARecord) {
  const std::string path = folder_ / "x.jsonl";
  for (const char* text : {"", "\n", "no record"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_THROW(read_run(path), UsageError) << text;
  }
  go();
  EXPECT_FALSE(read_run(request_.folder).rows.empty());
}

TEST_F(RunTest, ADryRunRunsNothing) {
  request_.dry_run = true;
  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(workers(), 0);
  EXPECT_FALSE(std::filesystem::exists(request_.folder));
  EXPECT_THAT(out_.str(), HasSubstr("paged:16/f32"));
  EXPECT_THAT(out_.str(), HasSubstr("3 cases"));
}

TEST_F(RunTest, ADryRunTellsTheShapesOfItsGroupsApart) {
  request_.dry_run = true;
  request_.overrides = {{"--heads", "heads", "8:2,8:8"}, {"--prompt-len", "prompt_len", "4,8"}};
  EXPECT_EQ(go(), kExitFine);
  const std::string text = out_.str();
  const size_t two = text.find("heads 8:2 of"), eight = text.find("heads 8:8 of");
  ASSERT_NE(two, std::string::npos);
  ASSERT_NE(eight, std::string::npos);
  EXPECT_EQ(text.find("heads 8:2 of", two + 1), std::string::npos) << "a heading for both lengths";
  EXPECT_LT(two, eight);
  EXPECT_THAT(text, HasSubstr("KV live"));
  EXPECT_THAT(text, HasSubstr("KV reserved"));
}

TEST_F(RunTest, BadPlansFailBeforeAnythingRuns) {
  request_.configs.push_back(folder_ / "none.yaml");
  EXPECT_THROW(go(), UsageError);
  EXPECT_EQ(workers(), 0);
  EXPECT_FALSE(std::filesystem::exists(request_.folder));
}

TEST_F(RunTest, ResumeRunsTheFailedCaseOnly) {
  fault("round", "kill");
  EXPECT_EQ(go(), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("paged:16/f32 failed: killed by SIGKILL"));

  script_.erase("engines");
  request_.resume = true;
  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(workers(), 2) << "the reference and one case";
  EXPECT_EQ(file().size(), 4u) << "the failed row stays in the file";
  EXPECT_THAT(statuses(), ElementsAre("ok", "ok", "ok"));
  EXPECT_EQ(file()[0]["run_id"], file()[3]["run_id"]);

  EXPECT_EQ(go(), kExitFine);
  EXPECT_EQ(workers(), 0) << "nothing is left to do";
}

TEST_F(RunTest, ResumeSurvivesATornLine) {
  go();
  const std::string whole = read_text(records());
  std::filesystem::resize_file(records(), whole.size() - 100);
  request_.resume = true;
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(err_.str(), HasSubstr("not whole"));
  EXPECT_EQ(workers(), 2);
  EXPECT_THAT(statuses(), ElementsAre("ok", "ok", "ok"));
}

TEST_F(RunTest, ResumeKeepsThePlansAndAddsNewOnes) {
  go();
  request_.resume = true;
  request_.configs = {write_plan("two", "compressed")};
  go();
  go();
  const Json plan = Json::parse(read_text(request_.folder + "/plan.json"));
  ASSERT_EQ(plan["plans"].size(), 2u);
  EXPECT_EQ(plan["plans"][0]["name"], "one");
  EXPECT_EQ(plan["plans"][1]["name"], "two");
}

TEST_F(RunTest, WhatAKilledRunLeftGoes) {
  go();
  const std::string stale = request_.folder + "/reference.1.tmp";
  std::ofstream(stale) << "half of it";
  request_.resume = true;
  go();
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(records()));
}

TEST_F(RunTest, AllRowsShareTheMachineAndHaveAStartOfTheirOwn) {
  fault("prepare", "kill");
  go();
  for (const Json& row : file()) {
    EXPECT_EQ(row["env"]["load"], file()[0]["env"]["load"]);
    ASSERT_TRUE(row["env"]["started"].is_string()) << row["status"];
    EXPECT_GE(row["env"]["started"].get<std::string>(), "2020");
  }
}

TEST_F(RunTest, ResumeNeedsAFolder) {
  request_.resume = true;
  request_.folder.clear();
  EXPECT_THROW(go(), UsageError);
}

TEST_F(RunTest, AnInvalidRowOutweighsAFailedOne) {
  script_["engines"]["contiguous/f16"] = {{"at", "verify"}, {"do", "incorrect"}};
  fault("round", "kill");
  EXPECT_EQ(go(), kExitInvalid);
}

TEST_F(RunTest, CtrlCKeepsTheRowsAndSaysHowToGoOn) {
  script_["engines"]["contiguous/f32"] = {{"at", "prepare"}, {"do", "exit"}};
  fault("round", "interrupt");
  EXPECT_EQ(go(), kExitInterrupted);
  EXPECT_THAT(statuses(), ElementsAre("failed"));
  EXPECT_THAT(err_.str(), HasSubstr("--resume"));

  script_.erase("engines");
  request_.resume = true;
  EXPECT_EQ(go(), kExitFine);
  EXPECT_THAT(statuses(), ElementsAre("ok", "ok", "ok"));
}

TEST(ExitCodeOf, InvalidThenFailedThenFine) {
  EXPECT_EQ(exit_code_of({}), kExitFine);
  EXPECT_EQ(exit_code_of({"ok", "skipped"}), kExitFine);
  EXPECT_EQ(exit_code_of({"ok", "failed"}), kExitFailed);
  EXPECT_EQ(exit_code_of({"invalid", "failed", "ok"}), kExitInvalid);
}

TEST(LatestRows, TheLastOfACaseWinsInTheFirstOnesPlace) {
  const std::vector<Json> rows = latest_rows(
      {{{"case_id", "a"}, {"n", 1}}, {{"case_id", "b"}, {"n", 2}}, {{"case_id", "a"}, {"n", 3}}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["n"], 3);
  EXPECT_EQ(rows[1]["n"], 2);
}

TEST(List, EveryTopicHasSomethingAndOthersAreNamed) {
  for (const std::string& topic : list_topics()) EXPECT_FALSE(list(topic).empty()) << topic;
  EXPECT_EQ(list("fields").find('`'), std::string::npos);
  try {
    list("codex");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean `codecs`"));
  }
}

TEST(List, PresetsComeFirstAndRefusedEnginesLastWithOneReason) {
  const std::string text = list("engines");
  std::vector<size_t> at;
  for (const char* name : {"contiguous/int8:g32 ", "paged:16/int8:g32 ", "recompute/int8:g32 ",
                           "\nrefused: recompute keeps nothing between steps"}) {
    ASSERT_NE(text.find(name), std::string::npos) << name;
    at.push_back(text.find(name));
  }
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
  EXPECT_EQ(text.find("keeps nothing"), text.rfind("keeps nothing"));
}

TEST(HumanSeconds, PicksTheUnit) {
  EXPECT_EQ(human_seconds(0.1234), "0.12 s");
  EXPECT_EQ(human_seconds(41.6), "42 s");
  EXPECT_EQ(human_seconds(200), "3 min 20 s");
  EXPECT_EQ(human_seconds(7500), "2 h 5 min");
}

}  // namespace
}  // namespace kvmark
