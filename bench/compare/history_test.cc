#include "bench/compare/history.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "bench/compare/compare_testing.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kTime = "latency.tpot_ms.p50";

class HistoryTest : public testing::Test {
 protected:
  ~HistoryTest() override { std::filesystem::remove(path_); }
  void add(const std::string& run, double tpot_ms) {
    Json row = compared_row("a", tpot_ms);
    row["run_id"] = run;
    append_history(path_, std::vector{row});
  }
  std::vector<double> times() const {
    return History::read(path_).figures(compared_row("a", 1), kTime);
  }
  const std::string path_ = fmt::format("{}{}.history.jsonl", ::testing::TempDir(), getpid());
};

TEST_F(HistoryTest, ComesBackInOrder) {
  add("1", 1.5);
  add("2", 2.5);
  EXPECT_THAT(times(), ElementsAre(1.5, 2.5));
}

TEST_F(HistoryTest, ARunThatIsAppendedAgainCountsOnceAndLast) {
  add("1", 1);
  add("2", 2);
  add("1", 3);
  EXPECT_THAT(times(), ElementsAre(2, 3));
}

TEST_F(HistoryTest, LooksBackAtTheNewestRuns) {
  for (size_t i = 0; i < kHistoryRuns + 5; ++i) add(std::to_string(i), 1.0 + i);
  const std::vector<double> found = times();
  ASSERT_EQ(found.size(), kHistoryRuns);
  EXPECT_EQ(found.front(), 6);
}

TEST_F(HistoryTest, RowsWithoutFiguresAreLeftOut) {
  append_history(path_, std::vector{bad_row("a", "failed", "killed")});
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(HistoryTest, ATornLastLineIsLeftOutAndTold) {
  add("1", 1);
  std::ofstream(path_, std::ios::app) << R"({"schema":"kvmark-hi)";
  EXPECT_THAT(times(), ElementsAre(1));
  EXPECT_THAT(*History::read(path_).torn, HasSubstr("history.jsonl:2: the last line is cut off"));
  add("2", 2);
  EXPECT_THAT(times(), ElementsAre(1, 2));
}

TEST_F(HistoryTest, WhatIsNoHistoryIsRefusedWithItsLine) {
  add("1", 1);
  append_record(path_, compared_row("a", 1));
  try {
    times();
    ADD_FAILURE() << "a record is no line of a history";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("history.jsonl:2: not a line of a history: schema: expected"));
  }
}

TEST(HistoryLine, HoldsWhatDecidesAndNoMore) {
  const Json line = history_line(compared_row("a", 1.25));
  EXPECT_EQ(line["figures"][std::string(kTime)], 1.25);
  EXPECT_EQ(line["figures"]["memory.kv_live_bytes"], 4096);
  EXPECT_FALSE(line["figures"].contains("latency.itl_ms.p50"));
  EXPECT_EQ(line["cpu"], "Some CPU");
  EXPECT_LT(line.dump().size(), 1000u);
}

TEST(RunScatter, IsThatOfTheRatioOfTwoRuns) {
  // Runs of σ 0.05 in logarithms: a ratio of two has √2 as much.
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 0.05);
  std::vector<double> runs(20000);
  for (double& run : runs) run = std::exp(normal(random));
  EXPECT_NEAR(*run_scatter(runs), 0.05 * std::sqrt(2.0), 0.002);
}

TEST(RunScatter, OneWildRunAndAChangeThatStaysDoNotWidenIt) {
  const double quiet = *run_scatter(std::vector{12.0, 12.1, 12.0, 12.2, 12.1, 12.2});
  EXPECT_LT(*run_scatter(std::vector{12.0, 12.1, 36.0, 12.1, 12.2}), 2 * quiet);
  EXPECT_LT(*run_scatter(std::vector{12.0, 12.1, 12.0, 12.1, 120.0}), 2 * quiet);
  EXPECT_LT(*run_scatter(std::vector{24.0, 24.2, 24.1, 12.0, 12.1, 12.2}), 2 * quiet);
}

TEST(RunScatter, NeedsFivePositiveFigures) {
  EXPECT_TRUE(run_scatter(std::vector{1.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_FALSE(run_scatter(std::vector{1.0, 1.0, 1.0, 1.0}));
  EXPECT_FALSE(run_scatter(std::vector{1.0, 1.0, 1.0, 1.0, 0.0}));
}

}  // namespace
}  // namespace kvmark
