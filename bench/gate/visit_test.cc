#include "bench/gate/visit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bench/run/fake_worker_testing.h"
#include "bench/run/run_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kEngine = "contiguous/f32";

// Rounds of three steps each.
class VisitTest : public testing::Test {
 protected:
  VisitTest() {
    options_.min_steps = 3;
    options_.min_steps_s = 0;
    options_.settle_steps = 1;
    options_.log_path = folder_ / "visits.log";
  }

  Binary binary(nlohmann::json rules = nlohmann::json::object(), const std::string& log = "log") {
    return {"fake",
            fake_worker({{"log", folder_ / log}, {"engines", {{kEngine, std::move(rules)}}}})};
  }

  Visit visit(const Binary& binary) {
    return take_visit(binary, small_case(kEngine), options_, random_);
  }

  int rounds() const {
    const std::string log = read_text(folder_ / "log");
    int count = 0;
    for (size_t at = 0; (at = log.find(" round", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  ScratchFolder folder_;
  VisitOptions options_;
  std::mt19937_64 random_{1};
};

TEST_F(VisitTest, TakesTheMedianOfOneRoundWhereThatIsEnough) {
  const Visit visit = this->visit(binary({{"tpot", 2.5}}));
  EXPECT_EQ(visit.steps, 3);
  EXPECT_EQ(visit.step_ms, 2.5);
  EXPECT_EQ(visit.digest, "d1");
  EXPECT_EQ(rounds(), 1);
}

TEST_F(VisitTest, TakesRoundsUntilThereAreEnoughSteps) {
  options_.min_steps = 7;
  EXPECT_EQ(visit(binary()).steps, 9);
  EXPECT_EQ(rounds(), 3);
}

TEST_F(VisitTest, TakesRoundsUntilTheStepsTookLongEnough) {
  options_.min_steps_s = 0.02;
  const Visit visit = this->visit(binary({{"tpot", 2.0}}));
  EXPECT_EQ(visit.steps, 12) << "4 rounds of 6 ms";
}

TEST_F(VisitTest, TimesWithoutVerifying) {
  visit(binary());
  EXPECT_EQ(read_text(folder_ / "log"), std::string(kEngine) + " prepare\n" + kEngine + " round\n");
}

TEST_F(VisitTest, RoundsThatDifferAreToldApartFromADeath) {
  options_.min_steps = 6;
  try {
    visit(binary({{"at", "round"}, {"index", 1}, {"do", "digest"}}));
    FAIL();
  } catch (const ResultChanged& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("round 2"), HasSubstr("d2")));
  }
}

TEST_F(VisitTest, DeathAndNonsenseAreFailures) {
  EXPECT_THROW(visit(binary({{"at", "round"}, {"do", "kill"}})), WorkerFailed);
  EXPECT_THROW(visit(binary({{"at", "round"}, {"do", "shapeless"}})), WorkerFailed);
  EXPECT_THROW(visit(binary({{"at", "prepare"}, {"do", "wrong"}})), WorkerFailed);
}

TEST_F(VisitTest, SaysWhichPartOfItWasLost) {
  EXPECT_LT(*visit(binary({{"tpot", 1.0}})).disturbance, 1);
  EXPECT_GT(*visit(binary({{"tpot", 1.0}, {"delay_ms", 1e6}})).disturbance, 1);
  EXPECT_EQ(visit(binary({{"tpot", 1.0}, {"delay_ms", nullptr}})).disturbance, std::nullopt)
      << "a system that tells no run delay";
}

TEST_F(VisitTest, EveryWorkerHasAnEnvironmentOfAnotherLength) {
  Binary noted = binary();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  noted.worker = {
      "sh",           "-c", "echo ${#KVMARK_PADDING} >>" + (folder_ / "lengths") + "; exec \"$@\"",
      "sh",           self, noted.worker[1],
      noted.worker[2]};
  for (int i = 0; i < 4; ++i) visit(noted);
  std::istringstream text(read_text(folder_ / "lengths"));
  std::set<int> lengths;
  for (int length; text >> length;) lengths.insert(length);
  EXPECT_EQ(lengths.size(), 4u);
  EXPECT_EQ(getenv("KVMARK_PADDING"), nullptr);
}

TEST_F(VisitTest, ABuildSaysWhetherItKnowsACase) {
  const Case c = small_case(kEngine);
  EXPECT_EQ(why_unknown(binary(), c, options_), std::nullopt) << "an old build gives no id";
  EXPECT_EQ(why_unknown(binary({{"case_id", case_id(c)}}), c, options_), std::nullopt);
  EXPECT_THAT(*why_unknown(binary({{"case_id", "another"}}), c, options_), HasSubstr("ignores"));
  EXPECT_THAT(*why_unknown(binary({{"at", "prepare"}, {"do", "unknown"}}), c, options_),
              HasSubstr("there is no such engine"));
  EXPECT_THROW(why_unknown(binary({{"at", "prepare"}, {"do", "error"}}), c, options_),
               WorkerFailed);
  EXPECT_THROW(why_unknown(binary({{"at", "prepare"}, {"do", "kill"}}), c, options_), WorkerFailed);
}

TEST_F(VisitTest, PairsAlternateWhichBuildGoesFirst) {
  const Binary base = binary({{"tpot", 2.0}}), now = binary({{"tpot", 2.2}});
  VisitPairs pairs(base, now, options_, 1);
  const auto first = pairs.take(small_case(kEngine), 0),
             second = pairs.take(small_case(kEngine), 1);
  EXPECT_TRUE(first.base_first);
  EXPECT_FALSE(second.base_first);
  EXPECT_EQ(second.base.step_ms, 2.0);
  EXPECT_EQ(second.now.step_ms, 2.2);
  EXPECT_NEAR(second.difference(), std::log(1.1), 1e-12);
}

TEST_F(VisitTest, TheSideThatFailedIsNamed) {
  const Binary good = binary(), bad = binary({{"at", "round"}, {"do", "kill"}});
  for (const bool base : {true, false}) {
    VisitPairs pairs(base ? bad : good, base ? good : bad, options_, 1);
    try {
      pairs.take(small_case(kEngine), 0);
      FAIL();
    } catch (const SideFailed& e) {
      EXPECT_EQ(e.base, base);
      EXPECT_EQ(e.status, "failed");
      EXPECT_THAT(e.what(), HasSubstr("SIGKILL"));
    }
  }
}

// Whatever is disturbed without end ends nevertheless.
TEST_F(VisitTest, DisturbedVisitsAreRepeatedUpToAQuarter) {
  const Binary noisy = binary({{"delay_ms", 1e6}});
  VisitPairs pairs(noisy, noisy, options_, 1);
  for (int i = 0; i < 12; ++i) pairs.take(small_case(kEngine), i);
  EXPECT_EQ(pairs.visits() - pairs.repeats(), 24) << "those that count";
  EXPECT_GE(pairs.repeats(), 7);
  EXPECT_LE(pairs.repeats(), 0.25 * pairs.visits());
  EXPECT_EQ(pairs.unknown(), 0);
}

TEST_F(VisitTest, VisitsOfWhichNothingIsKnownAreCounted) {
  const Binary silent = binary({{"delay_ms", nullptr}});
  VisitPairs pairs(silent, silent, options_, 1);
  for (int i = 0; i < 3; ++i) pairs.take(small_case(kEngine), i);
  EXPECT_EQ(pairs.visits(), 6);
  EXPECT_EQ(pairs.repeats(), 0);
  EXPECT_EQ(pairs.unknown(), 6);
}

TEST(OpenBinary, TellsWhatIsNoBuildOfKvmark) {
  ScratchFolder folder;
  const auto complaint = [](const std::string& path) -> std::string {
    try {
      open_binary(path);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(complaint(folder / "none"), HasSubstr("no such file"));
  EXPECT_THAT(complaint(folder.path()), HasSubstr("cannot be run"));
  std::ofstream(folder / "text") << "not a program\n";
  EXPECT_THAT(complaint(folder / "text"), HasSubstr("cannot be run"));
  EXPECT_THAT(complaint("/bin/true"), HasSubstr("is no kvmark"));
  EXPECT_THAT(complaint("/bin/false"), HasSubstr("no answer"));
  const std::string fake = folder / "it's a kvmark";
  std::ofstream(fake) << "#!/bin/sh\necho kvmark 1234\n";
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  EXPECT_THAT(complaint(fake), IsEmpty());
  EXPECT_THAT(open_binary(fake).worker, ElementsAre(fake, "worker"));
}

TEST_F(VisitTest, APlanThatCountsHasNoTimesToJudgeBy) {
  const std::string path = folder_ / "plan.yaml";
  std::ofstream(path) << "threads: 1\n";
  EXPECT_EQ(timed_plan(path, {}).name, "plan");
  try {
    timed_plan(path, {{"--set", "count", "callgrind"}});
    ADD_FAILURE() << "a count is no time";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("kvmark compare"));
  }
}

}  // namespace
}  // namespace kvmark
