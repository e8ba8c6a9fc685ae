#include "bench/gate/procedure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::ElementsAre;

// Takes every pair that is asked for; `difference(row, pair)` with pairs counted for each row.
std::vector<RowDecision> decide(int rows, const std::function<double(int, int)>& difference,
                                std::vector<int>* asked = nullptr) {
  Procedure procedure(rows);
  std::vector<int> taken(rows);
  while (const auto row = procedure.next()) {
    if (asked) asked->push_back(*row);
    procedure.add(*row, difference(*row, taken[*row]++));
  }
  std::vector<RowDecision> decisions;
  for (int row = 0; row < rows; ++row) decisions.push_back(procedure.decision(row));
  return decisions;
}

// Differences spread evenly over `centre` ± `width`, any eight in a row alike.
double around(double centre, double width, int pair) {
  return centre + width * (pair * 3 % 8 - 3.5) / 3.5;
}

TEST(Procedure, ScreensRowsInTurnAndConfirmsWhatIsSuspect) {
  std::vector<int> asked;
  const auto decisions = decide(
      3, [](int row, int pair) { return around(row == 1 ? 0.06 : 0.0, 0.005, pair); }, &asked);
  ASSERT_EQ(asked.size(), 3 * 8 + 24u);
  EXPECT_THAT(std::vector(asked.begin(), asked.begin() + 6), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(std::vector(asked.begin() + 24, asked.end()), testing::Each(1));
  EXPECT_EQ(decisions[1].finding, Finding::slower);
  EXPECT_TRUE(decisions[1].confirmed);
  EXPECT_EQ(decisions[1].pairs, 24);
  EXPECT_NEAR(decisions[1].change, std::expm1(0.06), 0.002);
  EXPECT_GT(*decisions[1].lower_bound, 0.005);
  EXPECT_EQ(decisions[0].finding, Finding::same);
  EXPECT_FALSE(decisions[0].confirmed);
  EXPECT_EQ(decisions[0].pairs, 8);
}

TEST(Procedure, ConfirmsByFreshPairsOnly) {
  const auto decisions =
      decide(1, [](int, int pair) { return around(pair < 8 ? 0.1 : 0.0, 0.003, pair); });
  EXPECT_EQ(decisions[0].finding, Finding::same) << "the screen's pairs were chance";
  EXPECT_EQ(decisions[0].pairs, 24);
}

TEST(Procedure, TakesFurtherPairsWhileTheIntervalIsWide) {
  const auto wide = decide(1, [](int, int pair) { return around(0.03, 0.2, pair); });
  EXPECT_EQ(wide[0].pairs, 48);
  EXPECT_EQ(wide[0].finding, Finding::undecided) << "may be by more than 5 %, or not at all";
  const auto fair = decide(1, [](int, int pair) { return around(0.04, 0.08, pair); });
  EXPECT_GT(fair[0].pairs, 24);
  EXPECT_LT(fair[0].pairs, 48);
  EXPECT_EQ(fair[0].pairs % 8, 0);
}

TEST(Procedure, TheMoreRowsAreKeptTheSurerItMustBe) {
  const auto pairs = [](int, int pair) { return around(0.035, 0.03, pair); };
  const double alone = *decide(1, pairs)[0].lower_bound;
  const double beside_others = *decide(8, pairs)[0].lower_bound;
  EXPECT_LT(beside_others, alone);
}

TEST(Procedure, SmallSurelyMeasuredSlowdownsAreNotSlower) {
  const auto decisions = decide(1, [](int, int pair) { return around(0.02, 0.002, pair); });
  EXPECT_TRUE(decisions[0].confirmed);
  EXPECT_EQ(decisions[0].finding, Finding::same) << "below 2.5 %";
}

TEST(Procedure, FasterRowsAreSaidToBe) {
  const auto decisions = decide(1, [](int, int pair) { return around(-0.05, 0.005, pair); });
  EXPECT_EQ(decisions[0].finding, Finding::faster);
}

TEST(Procedure, GoesOnWithoutADroppedRow) {
  Procedure procedure(2);
  procedure.add(0, 0.1);
  procedure.drop(0);
  for (int pair = 0; pair < 8; ++pair) {
    ASSERT_EQ(procedure.next(), 1);
    procedure.add(1, around(0, 0.01, pair));
  }
  EXPECT_EQ(procedure.next(), std::nullopt);
  EXPECT_EQ(procedure.decision(0).finding, Finding::dropped);
  EXPECT_EQ(procedure.decision(1).finding, Finding::same);
  EXPECT_THROW(procedure.add(1, 0), LogicError);
}

TEST(Procedure, CutShortDecidesNothing) {
  Procedure procedure(1);
  for (int pair = 0; pair < 20; ++pair) procedure.add(0, around(0.1, 0.001, pair));
  EXPECT_EQ(procedure.decision(0).finding, Finding::undecided);
  EXPECT_EQ(procedure.pairs_due(), 12);
}

// A machine whose visits vary by `sigma` in a normal way, a part of them disturbed by up to 30 %,
// whose speed swings by 10 % over a run, and grows slower by `drift` from each visit to the next.
class Machine {
 public:
  Machine(double sigma, double disturbed, double drift = 0)
      : noise_(0, sigma), disturbed_(disturbed), drift_(drift) {}

  // The `index`-th pair of a row, with the order of VisitPairs; the new build is slower by 0.05 %
  // anyhow.
  double pair(int index, double slowdown) {
    const double first = visit(), second = visit();
    return (index % 2 == 0 ? second - first : first - second) + 0.0005 + std::log1p(slowdown);
  }

 private:
  double visit() {
    const double y =
        noise_(random_) + 0.1 * std::sin(0.01 * visits_) + drift_ * static_cast<double>(visits_);
    ++visits_;
    return chance_(random_) < disturbed_ ? y + 0.3 * chance_(random_) : y;
  }

  std::mt19937_64 random_{20240607};
  std::normal_distribution<double> noise_;
  std::uniform_real_distribution<double> chance_{0, 1};
  double disturbed_, drift_;
  int visits_ = 0;
};

constexpr int kRows = 8;

int red_runs(Machine machine, int runs) {
  int red = 0;
  for (int run = 0; run < runs; ++run) {
    bool any = false;
    for (const RowDecision& decision :
         decide(kRows, [&](int, int pair) { return machine.pair(pair, 0); })) {
      any |= decision.finding == Finding::slower;
    }
    red += any;
  }
  return red;
}

int found(Machine machine, double slowdown, int runs) {
  int found = 0;
  for (int run = 0; run < runs; ++run) {
    const auto decisions = decide(
        kRows, [&](int row, int pair) { return machine.pair(pair, row == 3 ? slowdown : 0); });
    found += decisions[3].finding == Finding::slower;
  }
  return found;
}

// The promise: at most 1 % of runs red, at least 95 % of slowdowns of 5 % found, while the noise of
// a visit is 2 % or less.
TEST(ProcedureSimulated, UnchangedTreesAreHardlyEverRed) {
  EXPECT_LE(red_runs(Machine(0.01, 0), 2000), 4);
  EXPECT_LE(red_runs(Machine(0.02, 0), 2000), 4);
  EXPECT_LE(red_runs(Machine(0.015, 0.03), 2000), 4);
}

TEST(ProcedureSimulated, SlowdownsOfFivePercentAreFound) {
  EXPECT_GE(found(Machine(0.01, 0), 0.05, 500), 499);
  EXPECT_GE(found(Machine(0.02, 0), 0.05, 500), 480);
  EXPECT_GE(found(Machine(0.015, 0.03), 0.05, 500), 485);
}

// A second visit that is 3 % slower than the first, always, as of a processor that grows hot.
TEST(ProcedureSimulated, ADriftWithinPairsCancelsByTheirOrder) {
  EXPECT_LE(red_runs(Machine(0.01, 0, 0.03), 500), 1);
  EXPECT_GE(found(Machine(0.01, 0, 0.03), 0.05, 200), 190);
  Machine machine(0.01, 0, 0.03);
  const auto base_first = decide(kRows, [&](int, int) { return machine.pair(0, 0); });
  EXPECT_EQ(base_first[0].finding, Finding::slower) << "it would cry wolf without the order";
}

TEST(ProcedureSimulated, ANoisyMachineIsStillHonest) {
  EXPECT_LE(red_runs(Machine(0.06, 0.1), 500), 5) << "misses slowdowns, but does not cry wolf";
}

}  // namespace
}  // namespace kvmark
