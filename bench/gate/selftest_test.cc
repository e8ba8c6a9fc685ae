#include "bench/gate/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
    request_.rounds = 20;
    request_.runs = 1;
    request_.injected = 2;
    request_.visit.min_steps = 3;
    request_.visit.min_steps_s = 0;
    request_.procedure.screen_pairs = 5;
  }

  ExitCode go() {
    out_.str("");
    std::filesystem::remove(folder_ / "log");
    const Binary fake{"fake", fake_worker(script_), 0, build_};
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
  // How often workers were asked so; disturbed visits are repeated, so of some there may be more.
  int requests(const std::string& command) const {
    const std::string log = read_text(folder_ / "log");
    int count = 0;
    for (size_t at = 0; (at = log.find(" " + command, at)) != std::string::npos; ++at) ++count;
    return count;
  }

  ScratchFolder folder_;
  std::string build_ = "built";
  nlohmann::json script_ = {{"log", folder_ / "log"}};
  SelftestRequest request_;
  std::ostringstream out_, err_;
};

TEST_F(SelftestTest, MeasuresResamplesAndSaysWhatItSaw) {
  EXPECT_EQ(go(), kExitUndecided) << "slowdowns should have been found here, but were not";
  EXPECT_EQ(lines("verified").size(), 2u);
  EXPECT_EQ(lines("pair").size(), 40u);
  EXPECT_EQ(lines("pair")[3]["row"], 1);
  EXPECT_EQ(lines("pair")[3]["first"], "new") << "of the second round";
  EXPECT_EQ(lines("run").size(), 1u);
  EXPECT_EQ(lines("slowed").size(), 2u);
  EXPECT_EQ(requests("verify"), 2 * 2);
  EXPECT_GE(requests("prepare"), 2 * 2 + 2 * 40 + 2 * 2 * 5 + 2 * 2 * 5);
  EXPECT_THAT(out_.str(), HasSubstr("whole runs:  0 of 1 (95 %: 0.00–97.50 %)"));
  EXPECT_THAT(out_.str(), HasSubstr("5 % slower found:      0 of 2"));
  EXPECT_THAT(out_.str(), HasSubstr("0 of 4000 (95 % of the drawing: "));
  EXPECT_THAT(out_.str(), HasSubstr("of runs red: seen"));
  EXPECT_THAT(out_.str(), HasSubstr("slowdowns of 5 % found: NOT seen"));
}

TEST_F(SelftestTest, GoesOnWhereItStopped) {
  request_.injected = 0;
  request_.runs = 0;
  request_.rounds = 2;
  go();
  EXPECT_EQ(lines("pair").size(), 4u);
  EXPECT_EQ(requests("verify"), 4);
  request_.rounds = 5;
  request_.runs = 1;
  go();
  EXPECT_EQ(requests("verify"), 0) << "it is known what is computed";
  EXPECT_EQ(lines("pair").size(), 10u);
  EXPECT_EQ(lines("run").size(), 1u);
  EXPECT_EQ(lines("test").size(), 1u);
}

TEST_F(SelftestTest, AnInterruptKeepsWhatIsThere) {
  script_["engines"]["paged:16/f32"] = {{"at", "round"}, {"do", "interrupt"}};
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
  request_.slowdown = 0.05;
  request_.procedure.keep = 0.02;
  EXPECT_THROW(go(), UsageError);
  request_.procedure.keep = ProcedureOptions().keep;
  build_ = "built again";
  EXPECT_THROW(go(), UsageError);
}

TEST_F(SelftestTest, VisitsAreHeldToWhatWasVerified) {
  script_["engines"]["paged:16/f32"]["timed_digest"] = "d2";
  EXPECT_THROW(go(), SideFailed);
  EXPECT_EQ(lines("pair").size(), 1u);
}

TEST_F(SelftestTest, AWorkerThatDiesEndsIt) {
  script_["engines"]["paged:16/f32"] = {{"at", "round"}, {"do", "kill"}};
  EXPECT_THROW(go(), RuntimeError);
}

TEST_F(SelftestTest, SaysNothingOfTooFewPairs) {
  request_.injected = request_.runs = 0;
  request_.rounds = 1;
  EXPECT_EQ(go(), kExitUndecided);
  EXPECT_THAT(out_.str(), HasSubstr("too few"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("promised")));
}

// What a test of this machine's folder says, whoever measured it.
class RecordedTest : public SelftestTest {
 protected:
  static constexpr int kRounds = 300;

  // Pairs around `bias` with a noise of `sigma` a visit, 20 whole runs that are green, and 94
  // slowed ones of which `missed` were not found.
  ExitCode judge(double bias, double sigma, int missed) {
    request_.rounds = request_.runs = request_.injected = 0;
    go();
    request_.rounds = kRounds;
    request_.runs = 20;
    request_.injected = 94;
    std::mt19937_64 random(20240607);
    std::normal_distribution<double> difference(bias, std::sqrt(2.0) * sigma);
    std::ofstream file(folder_ / "test/selftest.jsonl", std::ios::app);
    for (int pair = 0; pair < 2 * kRounds; ++pair) {
      file << Json{{"kind", "pair"}, {"row", pair % 2}, {"difference", difference(random)}} << "\n";
    }
    const Json green = {{"decision", {{"finding", "same"}}}};
    for (int i = 0; i < 20; ++i) file << Json{{"kind", "run"}, {"rows", {green, green}}} << "\n";
    for (int i = 0; i < 94; ++i) {
      file << Json{{"kind", "slowed"}, {"found", i >= missed}, {"change", 0.05}} << "\n";
    }
    file.close();
    return go();
  }
};

TEST_F(RecordedTest, AQuietMachineKeepsBothPromises) {
  EXPECT_EQ(judge(0, 0.01, 1), kExitFine);
  EXPECT_EQ(requests("prepare"), 0) << "all of it was there";
  EXPECT_THAT(out_.str(), HasSubstr("of runs red: seen"));
  EXPECT_THAT(out_.str(), HasSubstr("found: seen"));
}

TEST_F(RecordedTest, SlowdownsThatWereMissedBreakThePromise) {
  EXPECT_EQ(judge(0, 0.01, 2), kExitUndecided);
  EXPECT_THAT(out_.str(), HasSubstr("of runs red: seen"));
  EXPECT_THAT(out_.str(), HasSubstr("found: NOT seen"));
}

TEST_F(RecordedTest, ANoisyMachineIsExcusedFromFindingThem) {
  EXPECT_EQ(judge(0, 0.06, 50), kExitFine);
  EXPECT_THAT(out_.str(), HasSubstr("too noisy"));
  EXPECT_THAT(out_.str(), HasSubstr("of runs red: seen"));
}

TEST_F(RecordedTest, FalseAlarmsAreExcusedNowhere) {
  EXPECT_EQ(judge(0.05, 0.025, 0), kExitUndecided) << "as of a build that is slower by itself";
  EXPECT_THAT(out_.str(), HasSubstr("too noisy"));
  EXPECT_THAT(out_.str(), HasSubstr("of runs red: NOT seen"));
}

}  // namespace
}  // namespace kvmark
