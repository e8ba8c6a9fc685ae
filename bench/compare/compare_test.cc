#include "bench/compare/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/compare/compare_testing.h"
#include "bench/compare/judge.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Comparison compared(std::vector<Json> base, std::vector<Json> now, CompareOptions options = {}) {
  return compare({"base", std::move(base)}, {"new", std::move(now)}, options);
}

const MetricComparison& metric(const Comparison& comparison, std::string_view path) {
  static const MetricComparison nothing;
  const auto& metrics = comparison.cases.at(0).metrics;
  const auto it = std::find_if(metrics.begin(), metrics.end(),
                               [&](const MetricComparison& m) { return m.metric == path; });
  EXPECT_NE(it, metrics.end()) << path;
  return it == metrics.end() ? nothing : *it;
}

Verdict verdict(const Json& base, const Json& now, std::string_view path,
                CompareOptions options = {}) {
  return metric(compared({base}, {now}, std::move(options)), path).verdict;
}

Json with(Json row, const std::string& pointer, Json value) {
  row[Json::json_pointer(pointer)] = std::move(value);
  return row;
}

constexpr std::string_view kTime = "latency.tpot_ms.p50";

TEST(Pairing, GoesByCaseWhateverTheOrder) {
  const Comparison c = compared({compared_row("a", 1), compared_row("b", 2)},
                                {compared_row("b", 2), compared_row("a", 1)});
  ASSERT_EQ(c.cases.size(), 2u);
  EXPECT_EQ(c.cases[0].case_id, "b");
  EXPECT_EQ(metric(c, kTime).change, 0);
  EXPECT_THAT(c.one_sided, IsEmpty());
  EXPECT_EQ(exit_code_of(c, true), kExitFine);
}

TEST(Exact, LeavesMeasurementsOut) {
  CompareOptions options;
  options.exact_only = true;
  const Json base = compared_row("a", 1), now = compared_row("a", 2);
  const Comparison c = compared({base}, {with(now, "/memory/kv_live_bytes", 123)}, options);
  for (const MetricComparison& m : c.cases[0].metrics) {
    EXPECT_EQ(m.field->certainty, Certainty::exact) << m.metric;
  }
  EXPECT_NE(metric(c, "memory.kv_live_bytes").verdict, Verdict::same);
  EXPECT_EQ(exit_code_of(compared({base}, {now}, options), true), kExitFine) << "twice as slow";
}

TEST(Pairing, WhatOneSideLacksIsListed) {
  Json fewer = with(compared_row("c", 1), "/case/threads", 4);
  Json more = compared_row("d", 1);
  more["case"]["engine"] = fewer["case"]["engine"];
  const Comparison c =
      compared({compared_row("a", 1), compared_row("b", 1), fewer}, {compared_row("a", 1), more});
  ASSERT_EQ(c.one_sided.size(), 3u);
  EXPECT_TRUE(c.one_sided[0].in_base);
  EXPECT_THAT(c.one_sided[0].label, HasSubstr("paged:16/b"));
  EXPECT_EQ(c.one_sided[0].reason, "");
  EXPECT_EQ(c.one_sided[1].reason, "the other side has it with 2 threads");
  EXPECT_FALSE(c.one_sided[2].in_base);
  EXPECT_TRUE(c.one_sided[0].vanished) << "nobody knows that it was not planned";
  EXPECT_FALSE(c.one_sided[1].vanished) << "the machine has other threads";
  EXPECT_EQ(exit_code_of(c, false), kExitFine);
  EXPECT_EQ(exit_code_of(c, true), kExitUndecided);
  const Comparison smaller = compare({"base", {compared_row("a", 1), compared_row("b", 1)}},
                                     {"new", {compared_row("a", 1)}, {"a"}}, {});
  EXPECT_EQ(exit_code_of(smaller, true), kExitFine) << "another plan, which is known";
}

TEST(Pairing, WhatIsNewAndNotOkSaysSo) {
  const Comparison c =
      compared({compared_row("a", 1)}, {compared_row("a", 1), bad_row("b", "invalid", "wrong")});
  EXPECT_EQ(c.one_sided.at(0).reason, "invalid: wrong");
}

TEST(Pairing, AnIdThatStandsForTwoCasesIsRefused) {
  const Json base = compared_row("a", 1);
  try {
    compared({base}, {with(base, "/case/prompt_len", 128)});
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("case a: `prompt_len` is 16 in the base and 128 in the new"));
  }
  const Json other_version = with(with(base, "/case/axis", 1), "/case/preset", "paged");
  EXPECT_EQ(compared({base}, {other_version}).cases.size(), 1u);
}

TEST(Pairing, ACaseThatWasPlannedAndHasNoRowHasVanished) {
  const std::vector<Json> base{compared_row("a", 1), compared_row("b", 1),
                               bad_row("c", "failed", "died")};
  const ComparedRun now{"new", {compared_row("a", 1)}, {"a", "b", "c"}};
  const Comparison c = compare({"base", base}, now, {});
  ASSERT_EQ(c.one_sided.size(), 2u);
  EXPECT_TRUE(c.one_sided[0].vanished);
  EXPECT_THAT(c.one_sided[0].reason, HasSubstr("planned"));
  EXPECT_FALSE(c.one_sided[1].vanished) << "it failed in the base too";
  EXPECT_EQ(exit_code_of(c, false), kExitFine);
  EXPECT_EQ(exit_code_of(c, true), kExitUndecided);
}

TEST(Pairing, NothingInCommonIsUndecided) {
  EXPECT_EQ(exit_code_of(compared({compared_row("a", 1)}, {compared_row("b", 1)}), false),
            kExitUndecided);
}

TEST(Pairing, EqualLabelsGetTheIdsOfTheirCases) {
  Json twin = compared_row("0123456789abcdef", 1);
  twin["case"]["engine"] = "paged:16/a";
  const Comparison c = compared({compared_row("a", 1), twin}, {compared_row("a", 1), twin});
  EXPECT_THAT(c.cases[0].label, HasSubstr("2 threads #a"));
  EXPECT_THAT(c.cases[1].label, HasSubstr("2 threads #01234567"));
}

TEST(Status, OfOnceGoodRowsDecides) {
  const Json ok = compared_row("a", 1), failed = bad_row("a", "failed", "killed"),
             invalid = bad_row("a", "invalid", "wrong"), skipped = bad_row("a", "skipped", "slow");
  EXPECT_EQ(exit_code_of(compared({ok}, {failed}), false), kExitFailed);
  EXPECT_EQ(exit_code_of(compared({ok}, {invalid}), false), kExitInvalid);
  EXPECT_EQ(compared({ok}, {failed}).cases[0].reason, "killed");
  EXPECT_THAT(compared({ok}, {failed}).cases[0].metrics, IsEmpty());
  // Beside a case that is compared, so that there is something to decide by.
  const Json other = compared_row("b", 1);
  EXPECT_EQ(exit_code_of(compared({failed, other}, {failed, other}), true), kExitFine);
  EXPECT_EQ(exit_code_of(compared({failed, other}, {ok, other}), true), kExitFine);
  EXPECT_EQ(exit_code_of(compared({ok, other}, {skipped, other}), false), kExitFine);
  EXPECT_EQ(exit_code_of(compared({ok, other}, {skipped, other}), true), kExitUndecided);
  EXPECT_EQ(exit_code_of(compared({skipped}, {skipped}), false), kExitUndecided);
}

TEST(Status, ARowThatOnlyMissedItsGateCanStillBreak) {
  Json gate = compared_row("a", 1);
  gate["status"] = "invalid";
  gate["reason"] = "misses its gate";
  ASSERT_TRUE(compared({gate}, {gate}).cases[0].counts);
  EXPECT_EQ(exit_code_of(compared({gate}, {gate}), false), kExitFine);
  Json wrong = bad_row("a", "invalid", "wrong");
  wrong["accuracy"]["correct"]["passed"] = false;
  EXPECT_EQ(exit_code_of(compared({gate}, {wrong}), false), kExitInvalid);
  EXPECT_EQ(exit_code_of(compared({gate}, {bad_row("a", "failed", "died")}), false), kExitFailed);
}

TEST(Exact, AnyGrowthOfBytesIsWorse) {
  const Json row = compared_row("a", 1);
  const std::string path = "/memory/kv_live_bytes";
  EXPECT_EQ(verdict(row, with(row, path, 4097), "memory.kv_live_bytes"), Verdict::worse);
  EXPECT_EQ(verdict(row, with(row, path, 4095), "memory.kv_live_bytes"), Verdict::better);
  EXPECT_EQ(verdict(row, row, "memory.kv_live_bytes"), Verdict::same);
}

TEST(Exact, LossIsWorseBeyondBothBoundsOnly) {
  const auto of = [](double base, double now) {
    const std::string path = "/accuracy/loss/attend_rel_rms";
    const Json row = compared_row("a", 1);
    return verdict(with(row, path, base), with(row, path, now), "accuracy.loss.attend_rel_rms");
  };
  EXPECT_EQ(of(0.001, 0.00119), Verdict::same);
  EXPECT_EQ(of(0.001, 0.00121), Verdict::worse);
  EXPECT_EQ(of(0.00121, 0.001), Verdict::better);
  EXPECT_EQ(of(3e-7, 9e-7), Verdict::same) << "three times as much of nothing";
  EXPECT_EQ(of(0, 5e-7), Verdict::same);
  EXPECT_EQ(of(0, 1.1e-6), Verdict::worse);
}

TEST(Exact, MoreAgreementIsBetter) {
  const std::string path = "/accuracy/loss/top1_agreement";
  const Json row = with(compared_row("a", 1), path, 0.98);
  EXPECT_EQ(verdict(row, with(row, path, 0.97), "accuracy.loss.top1_agreement"), Verdict::worse);
  EXPECT_EQ(verdict(row, with(row, path, 0.99), "accuracy.loss.top1_agreement"), Verdict::better);
  EXPECT_EQ(verdict(row, with(row, path, 0.979), "accuracy.loss.top1_agreement"), Verdict::same);
}

TEST(Exact, ALostFigureIsWorseAndANewOneIsShown) {
  const Json row = compared_row("a", 1);
  const Json without = with(row, "/memory/kv_live_bytes", nullptr);
  EXPECT_EQ(verdict(row, without, "memory.kv_live_bytes"), Verdict::worse);
  EXPECT_EQ(verdict(without, row, "memory.kv_live_bytes"), Verdict::shown);
}

TEST(Exact, AnotherDigestIsShownNeverRed) {
  const Json row = compared_row("a", 1);
  const Comparison c = compared({row}, {with(row, "/digest", "d2")});
  EXPECT_EQ(metric(c, "digest").verdict, Verdict::shown);
  EXPECT_EQ(metric(c, "digest").note, "changed");
  EXPECT_THAT(c.notes, Contains(HasSubstr("digest changed in 1 cases")));
  EXPECT_EQ(exit_code_of(c, true), kExitFine);
}

TEST(Exact, ARowWithoutFiguresIsJudgedByItsStatusAlone) {
  Json failed = bad_row("a", "failed", "died");
  failed["memory"] = empty_record()["memory"];
  const Comparison c = compared({compared_row("a", 1)}, {failed});
  EXPECT_THAT(c.cases[0].metrics, IsEmpty());
}

TEST(Time, ThatOnlyTheBaseHasIsUndecided) {
  const Json row = compared_row("a", 1);
  EXPECT_EQ(verdict(row, with(row, "/latency/tpot_ms", nullptr), kTime), Verdict::undecided);
}

TEST(Time, IsThatOfTheWholeRunWhereOneSideHasNoOther) {
  const Json base = with(compared_row("a", 1), "/latency/tpot_ms", nullptr);
  const Json now = compared_row("a", 3);
  EXPECT_EQ(verdict(base, now, "latency.e2e_ms.p50"), Verdict::worse);
}

TEST(Figures, ThatAreNegativeAreRefused) {
  const Json base = compared_row("a", 1);
  for (const char* path : {"/memory/kv_live_bytes", "/latency/tpot_ms/p50"}) {
    EXPECT_THROW(compared({base}, {with(base, path, -7)}), UsageError) << path;
  }
}

TEST(Figures, AnIntervalThatIsNoneIsNone) {
  const Json base = with(compared_row("a", 1), "/latency/tpot_ms/p50_ci95", {nullptr, "x"});
  EXPECT_EQ(verdict(base, compared_row("a", 1.5), kTime), Verdict::worse);
}

TEST(Time, CountsBeyondTenPercentEitherWay) {
  EXPECT_EQ(verdict(compared_row("a", 1), compared_row("a", 1.09), kTime), Verdict::same);
  EXPECT_EQ(verdict(compared_row("a", 1), compared_row("a", 1.11), kTime), Verdict::worse);
  EXPECT_EQ(verdict(compared_row("a", 1.11), compared_row("a", 1), kTime), Verdict::better);
}

TEST(Time, IsOneForEachRow) {
  const Json base = compared_row("a", 1), now = compared_row("a", 2);
  const Comparison c = compared({base}, {now});
  EXPECT_EQ(metric(c, "latency.e2e_ms.p50").verdict, Verdict::shown);
  // Of a single token there is the whole run alone.
  const auto single = [](const Json& row) { return with(row, "/latency/tpot_ms", nullptr); };
  EXPECT_EQ(verdict(single(base), single(now), "latency.e2e_ms.p50"), Verdict::worse);
}

TEST(Time, OfTooFewRoundsOrOverlappingIntervalsIsUndecided) {
  EXPECT_EQ(verdict(compared_row("a", 1, 2), compared_row("a", 2, 7), kTime), Verdict::undecided);
  EXPECT_EQ(verdict(compared_row("a", 1, 3), compared_row("a", 2, 3), kTime), Verdict::worse);
  Json wide = compared_row("a", 1.2);
  wide["latency"]["tpot_ms"]["p50_ci95"] = {1.0, 1.4};
  const Comparison c = compared({compared_row("a", 1)}, {wide});
  EXPECT_EQ(metric(c, kTime).verdict, Verdict::undecided);
  EXPECT_THAT(metric(c, kTime).note, AllOf(HasSubstr("overlap"), HasSubstr("[1.000, 1.400]")));
  EXPECT_EQ(exit_code_of(c, false), kExitFine);
  EXPECT_EQ(exit_code_of(c, true), kExitUndecided);
}

TEST(Time, WithoutHistoryItsNoiseIsUnknown) {
  const Comparison c = compared({compared_row("a", 1)}, {compared_row("a", 1)});
  EXPECT_THAT(c.notes, Contains(HasSubstr("noise unknown for 1 of 1 times")));
  EXPECT_THAT(metric(c, kTime).note, HasSubstr("noise unknown"));
}

class WithHistory : public testing::Test {
 protected:
  ~WithHistory() override { std::filesystem::remove(path_); }
  void add(const std::string& run, const Json& row) {
    append_history(path_, std::vector{with(row, "/run_id", run)});
  }
  CompareOptions options() const {
    CompareOptions options;
    options.history = History::read(path_);
    return options;
  }
  const std::string path_ =
      fmt::format("{}{}.history_of_compare.jsonl", ::testing::TempDir(), getpid());
};

TEST_F(WithHistory, ANoisyCaseNeedsThreeSigma) {
  int run = 0;
  for (const double ms : {1.0, 1.1, 0.9, 1.05, 0.95, 1.0}) {
    add(std::to_string(run++), compared_row("a", ms));
  }
  const Json base = compared_row("a", 1), now = with(compared_row("a", 1.25), "/run_id", "now");
  const MetricComparison m = metric(compared({base}, {now}, options()), kTime);
  // Neighbours differ by 9.5, 20, 15, 10 and 5 % in logarithms, by 10 % in the middle; 1.4826 times
  // that is σ, and 3σ some 56 %.
  EXPECT_NEAR(*m.threshold, 0.56, 0.02);
  EXPECT_EQ(m.verdict, Verdict::same);
  EXPECT_THAT(compared({base}, {now}, options()).notes,
              Contains(HasSubstr("the thresholds of 1 figures are wider, up to 56 %")));
  EXPECT_THAT(m.note, AllOf(HasSubstr("3σ of 6 earlier runs"), HasSubstr("+25.0 %")));
  EXPECT_EQ(verdict(base, compared_row("a", 1.7), kTime, options()), Verdict::worse);
}

TEST_F(WithHistory, AQuietCaseKeepsTenPercent) {
  for (int run = 0; run < 5; ++run) {
    add(std::to_string(run), compared_row("a", 1 + 0.001 * run));
  }
  const Comparison c = compared({compared_row("a", 1)}, {compared_row("a", 1.05)}, options());
  EXPECT_EQ(metric(c, kTime).threshold, 0.1);
  EXPECT_THAT(c.notes, Not(Contains(HasSubstr("noise unknown"))));
}

TEST_F(WithHistory, OtherMachinesAndItsOwnRunDoNotCount) {
  for (int run = 0; run < 4; ++run) add(std::to_string(run), compared_row("a", 1));
  add("4", with(compared_row("a", 1), "/env/simd", "AVX3"));
  add("5", with(compared_row("a", 1), "/env/cpu", "Another CPU"));
  add("6", with(compared_row("a", 1), "/env/compiler", "clang 14.0.6"));
  add("7", compared_row("b", 1));
  add("now", compared_row("a", 1));
  add("3", compared_row("a", 1));  // again
  const Json now = with(compared_row("a", 1), "/run_id", "now");
  const MetricComparison m = metric(compared({compared_row("a", 1)}, {now}, options()), kTime);
  EXPECT_THAT(m.note, HasSubstr("noise unknown: 4 earlier runs"));
}

TEST(Thresholds, ReplaceThoseOfTheTable) {
  CompareOptions options;
  options.thresholds = {{std::string(kTime), 0.05}, {"memory.kv_live_bytes", 0.5}};
  const Json base = compared_row("a", 1), now = compared_row("a", 1.07);
  EXPECT_EQ(verdict(base, now, kTime, options), Verdict::worse);
  EXPECT_EQ(
      verdict(base, with(now, "/memory/kv_live_bytes", 6000), "memory.kv_live_bytes", options),
      Verdict::same);
  EXPECT_EQ(metric(compared({base}, {now}, options), "latency.e2e_ms.p50").verdict, Verdict::shown);
}

TEST(Thresholds, MakeAShownMetricDecide) {
  const Json base = with(compared_row("a", 1), "/memory/peak_rss_bytes", 1000);
  const Json now = with(base, "/memory/peak_rss_bytes", 1060);
  EXPECT_EQ(verdict(base, now, "memory.peak_rss_bytes"), Verdict::shown);
  CompareOptions options;
  options.thresholds = {{"memory.peak_rss_bytes", 0.05}};
  EXPECT_EQ(verdict(base, now, "memory.peak_rss_bytes", options), Verdict::worse);
}

TEST(Thresholds, MakeASecondTimeDecide) {
  CompareOptions options;
  const Json base = compared_row("a", 1), now = compared_row("a", 1.07);
  options.time_threshold = 0.05;
  const std::string_view second = "latency.e2e_ms.p50";
  EXPECT_EQ(verdict(base, now, kTime, options), Verdict::worse);
  EXPECT_EQ(verdict(base, now, second, options), Verdict::shown) << "one time a row";
  options.time_threshold.reset();
  options.thresholds = {{std::string(second), 0.05}};
  EXPECT_EQ(verdict(base, now, kTime, options), Verdict::same);
  EXPECT_EQ(verdict(base, now, second, options), Verdict::worse);
}

TEST(FurtherMetrics, Decide) {
  CompareOptions options;
  options.gated = {parse_metric("latency.e2e_ms"), parse_metric("work.attend_gb_per_s")};
  const Json base = with(compared_row("a", 1), "/work/attend_gb_per_s", 20);
  const Json now = with(compared_row("a", 2), "/work/attend_gb_per_s", 15);
  const Comparison c = compared({base}, {now}, options);
  EXPECT_EQ(metric(c, kTime).verdict, Verdict::worse);
  EXPECT_EQ(metric(c, "latency.e2e_ms.p50").verdict, Verdict::worse);
  EXPECT_EQ(metric(c, "work.attend_gb_per_s").verdict, Verdict::worse) << "bigger is better";
}

TEST(Machines, ThatDifferAreRefusedUnlessAskedFor) {
  const Json base = compared_row("a", 1);
  for (const auto& [path, value] : {std::pair<std::string, Json>{"/env/cpu", "Another CPU"},
                                    std::pair<std::string, Json>{"/env/gpu", "Some GPU"},
                                    std::pair<std::string, Json>{"/env/cores", 4}}) {
    const Json now = with(compared_row("a", 9), path, value);
    try {
      compared({base}, {now});
      ADD_FAILURE() << path;
    } catch (const UsageError& e) {
      EXPECT_THAT(e.what(), HasSubstr("--across-machines"));
    }
    CompareOptions options;
    options.across_machines = true;
    const Comparison c = compared({base}, {with(now, "/memory/kv_live_bytes", 5000)}, options);
    EXPECT_EQ(metric(c, kTime).verdict, Verdict::shown);
    EXPECT_EQ(metric(c, "memory.kv_live_bytes").verdict, Verdict::worse);
    EXPECT_THAT(c.notes, Contains(HasSubstr("another machine")));
  }
}

TEST(Surroundings, DifferencesAreNotesAndEqualOnesAreNot) {
  Json now = compared_row("a", 1);
  now["env"].update({{"simd", "AVX3"}, {"git", "def"}, {"unstable", {"virtual machine"}}});
  EXPECT_THAT(
      compared({compared_row("a", 1)}, {now}).notes,
      AllOf(Contains(HasSubstr("simd: AVX2 → AVX3; other kernels")), Contains("git: abc → def"),
            Contains("unstable, new: virtual machine"), Not(Contains(HasSubstr("compiler")))));
}

TEST(Surroundings, DifferencesAreOfPairs) {
  const auto row = [](const char* id, const char* simd) {
    return with(compared_row(id, 1), "/env/simd", simd);
  };
  const Comparison c = compared({row("a", "AVX3"), row("b", "AVX2"), row("c", "AVX3")},
                                {row("a", "AVX3"), row("b", "AVX2"), row("c", "AVX2")});
  EXPECT_THAT(c.notes, Contains(HasSubstr("simd: AVX3 → AVX2")));
}

TEST(Surroundings, ALooserToleranceAndAnotherKernelAreNotes) {
  const Json base = with(compared_row("a", 1), "/kernel", "avx512");
  const Json now = with(with(base, "/accuracy/correct/tolerance", 0.1), "/kernel", "generic");
  EXPECT_THAT(compared({base}, {now}).notes, AllOf(Contains(HasSubstr("tolerance: 1e-05 → 0.1")),
                                                   Contains(HasSubstr("avx512 → generic"))));
}

TEST(VerdictOf, IsTheMirrorImageForBiggerAndSmaller) {
  EXPECT_EQ(verdict_of(Better::smaller, 100, 111, 0.1, 0), Verdict::worse);
  EXPECT_EQ(verdict_of(Better::smaller, 111, 100, 0.1, 0), Verdict::better);
  EXPECT_EQ(verdict_of(Better::bigger, 100, 111, 0.1, 0), Verdict::better);
  EXPECT_EQ(verdict_of(Better::bigger, 111, 100, 0.1, 0), Verdict::worse);
  EXPECT_EQ(verdict_of(Better::smaller, 100, 110, 0.1, 0), Verdict::same);
  EXPECT_EQ(verdict_of(Better::smaller, 110, 100, 0.1, 0), Verdict::same);
}

}  // namespace
}  // namespace kvmark
