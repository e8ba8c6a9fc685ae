#include "bench/gate/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/run/fake_worker_testing.h"
#include "bench/run/run_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

// Scripted workers do no extra work, so nothing that was slowed down is found.
class SelftestTest : public testing::Test {
 protected:
  SelftestTest() {
    request_.config = folder_ / "plan.yaml";
    std::ofstream(request_.config)
        << "name: one\nmodel: {preset: seed-gqa}\nengines: [contiguous, paged]\n"
        << "workload: {prompt_len: 4, gen_len: 4, max_seq_len: 64}\nthreads: 1\n";
    request_.folder = folder_ / "test";
    request_.pairs = 39;
    request_.runs = 1;
    request_.injected = 2;
    request_.visit.min_steps = 3;
    request_.visit.min_steps_s = 0;
    request_.procedure.screen_pairs = 5;
  }

  ExitCode go() {
    out_.str("");
    std::filesystem::remove(folder_ / "log");
    const Binary fake{"fake", fake_worker(script_)};
    request_.base = request_.now = fake;
    return selftest_gate(request_, out_, err_);
  }

  std::vector<Json> lines(const std::string& kind) const {
    std::vector<Json> found;
    std::istringstream text(read_text(folder_ / "test/selftest.jsonl"));
    for (std::string line; std::getline(text, line);) {
      Json json = Json::parse(line);
      if (json["kind"] == kind) found.push_back(std::move(json));
    }
    return found;
  }
  int visits() const {
    const std::string log = read_text(folder_ / "log");
    int count = 0;
    for (size_t at = 0; (at = log.find(" prepare", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  ScratchFolder folder_;
  nlohmann::json script_ = {{"log", folder_ / "log"}};
  SelftestRequest request_;
  std::ostringstream out_, err_;
};

TEST_F(SelftestTest, MeasuresResamplesAndSaysWhatItSaw) {
  EXPECT_EQ(go(), kExitUndecided) << "slowdowns should have been found here, but were not";
  EXPECT_EQ(lines("pair").size(), 40u) << "whole rounds of two rows";
  EXPECT_EQ(lines("pair")[3]["row"], 1);
  EXPECT_EQ(lines("pair")[3]["first"], "new") << "of the second round";
  EXPECT_EQ(lines("run").size(), 1u);
  EXPECT_EQ(lines("slowed").size(), 2u);
  EXPECT_EQ(visits(), 2 * 40 + 2 * 2 * 5 + 2 * 2 * 5);
  EXPECT_THAT(out_.str(), HasSubstr("whole runs:  0 of 1 (95 %: 0.00–97.50 %)"));
  EXPECT_THAT(out_.str(), HasSubstr("5 % slower found:      0 of 2"));
  EXPECT_THAT(out_.str(), HasSubstr("NOT seen"));
}

TEST_F(SelftestTest, GoesOnWhereItStopped) {
  request_.injected = 0;
  request_.runs = 0;
  request_.pairs = 4;
  go();
  EXPECT_EQ(visits(), 8);
  request_.pairs = 10;
  request_.runs = 1;
  go();
  EXPECT_EQ(visits(), 12 + 20);
  EXPECT_EQ(lines("test").size(), 1u);
}

TEST_F(SelftestTest, AnInterruptKeepsWhatIsThere) {
  script_["engines"]["paged:16/f32"] = {{"at", "prepare"}, {"do", "interrupt"}};
  EXPECT_EQ(go(), kExitInterrupted);
  EXPECT_EQ(lines("pair").size(), 1u);
  EXPECT_THAT(err_.str(), HasSubstr("-o "));
  script_.erase("engines");
  go();
  EXPECT_EQ(lines("pair").size(), 40u);
}

TEST_F(SelftestTest, AnotherTestsFolderIsRefused) {
  request_.injected = request_.runs = 0;
  go();
  request_.slowdown = 0.1;
  EXPECT_THROW(go(), UsageError);
}

TEST_F(SelftestTest, AWorkerThatDiesEndsIt) {
  script_["engines"]["paged:16/f32"] = {{"at", "round"}, {"do", "kill"}};
  EXPECT_THROW(go(), RuntimeError);
}

TEST_F(SelftestTest, SaysNothingOfTooFewPairs) {
  request_.injected = request_.runs = 0;
  request_.pairs = 2;
  EXPECT_EQ(go(), kExitUndecided);
  EXPECT_THAT(out_.str(), HasSubstr("too few"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("promised")));
}

}  // namespace
}  // namespace kvmark
