#include "bench/gate/resampling.h"

#include <gtest/gtest.h>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// Differences of two visits with a noise of `sigma` each.
RecordedRounds record(int rounds, int rows, double sigma, double bias = 0) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> visit(0, sigma);
  RecordedRounds recorded(rounds, std::vector<double>(rows));
  for (auto& round : recorded) {
    for (double& difference : round) difference = bias + visit(random) - visit(random);
  }
  return recorded;
}

TEST(VisitSigma, IsThatOfOneVisitWhateverAFewDo) {
  RecordedRounds rounds = record(400, 2, 0.02);
  EXPECT_NEAR(visit_sigma(rounds, 0), 0.02, 0.002);
  for (int i = 0; i < 12; ++i) rounds[i][0] += 0.4;
  EXPECT_NEAR(visit_sigma(rounds, 0), 0.02, 0.002);
}

TEST(Resampler, QuietMachinesKeepBothPromises) {
  const RecordedRounds rounds = record(40, 8, 0.01);
  Resampler resampler(rounds, {}, 1);
  EXPECT_LE(resampler.red_runs(500), 2);
  EXPECT_GE(resampler.found(0.05, 200), 198);
  EXPECT_EQ(resampler.found(0, 100), 0);
}

TEST(Resampler, SmallSlowdownsAndNoisyMachinesAreMissed) {
  const RecordedRounds quiet = record(40, 4, 0.01), noisy = record(40, 4, 0.08);
  EXPECT_LE(Resampler(quiet, {}, 1).found(0.01, 200), 10);
  EXPECT_LE(Resampler(noisy, {}, 1).found(0.05, 200), 160);
}

TEST(Resampler, ABuildThatIsAlwaysSlowerIsRed) {
  const RecordedRounds rounds = record(40, 4, 0.01, 0.05);
  EXPECT_EQ(Resampler(rounds, {}, 1).red_runs(50), 50) << "a twin that is slower is a false alarm";
}

TEST(Resampler, NeedsRounds) {
  const RecordedRounds rounds = record(19, 2, 0.01);
  EXPECT_THROW(Resampler(rounds, {}, 1), LogicError);
}

}  // namespace
}  // namespace kvmark
