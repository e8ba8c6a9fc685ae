#include "bench/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/report_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first line that starts with `start`, or "".
std::string line_with(const std::string& text, const std::string& start) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(start)) return line;
  }
  return "";
}

TEST(Table, ShowsFiguresAndTheSpeedUpAgainstRecompute) {
  const std::string text = table(quickstart());
  EXPECT_THAT(text, HasSubstr("speed-up against recompute"));
  const std::string fp16 = line_with(text, "fp16");
  for (const char* part : {"0+511", "1250", "0.8000", "12.50", "2.00 MiB", "4 MiB", "4 KiB",
                           "✓ 3.1e-07", "attn 4.2e-04", "100.0"}) {
    EXPECT_THAT(fp16, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr("engines: contiguous = contiguous/f32, fp16 = contiguous/f16"));
}

TEST(Table, ShowsWhatIsReachedOfTheCeilingWhereAnyRowHasIt) {
  std::vector<Json> records = quickstart();
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(text, Not(HasSubstr("of ceiling")));
  }
  records.push_back(bad("paged:16/f32", "failed", "died"));
  records[1]["work"]["bandwidth_fraction"] = 0.9437;
  records[1]["work"]["read_ceiling_gb_per_s"] = 41.16;
  const std::string text = table(records);
  EXPECT_THAT(text, AllOf(HasSubstr("of ceiling"), HasSubstr("of ceiling: stored bytes"),
                          Not(HasSubstr("‡"))));
  EXPECT_THAT(line_with(text, "contiguous/f32"),
              AllOf(HasSubstr(" 94.4 (41.2) "), EndsWith("80.00")));
  EXPECT_THAT(line_with(text, "contiguous/f16"), AllOf(HasSubstr("  —  "), EndsWith("100.0")));
  EXPECT_THAT(markdown(records),
              AllOf(HasSubstr("| of ceiling, % (GB/s) |"), HasSubstr("| 94.4 (41.2) |")));
}

TEST(Table, CountedRowsStandByThemselvesWithoutColumnsOfTimes) {
  std::vector<Json> records = quickstart();
  records.push_back(row("contiguous/int8:g32", "compressed", 1));
  Json& counted = records.back();
  for (const char* timed : {"latency", "throughput", "samples"}) {
    counted[timed] = empty_record()[timed];
  }
  counted["case"]["count"] = "callgrind";
  counted["counters"]["instructions_per_step"] = 113809.4;
  const std::string both = table(records);
  EXPECT_THAT(both,
              AllOf(HasSubstr("· count callgrind"), HasSubstr("instructions: of a decode step")));
  EXPECT_THAT(line_with(both, "compressed"), AllOf(HasSubstr("113809"), Not(HasSubstr("—"))));
  EXPECT_THAT(line_with(both, "recompute"), Not(HasSubstr("instructions")));
  const std::string alone = table({&counted, 1});
  EXPECT_THAT(alone, Not(HasSubstr("TPOT mean")));
  EXPECT_THAT(alone, Not(HasSubstr("speed-up against")));
  EXPECT_THAT(table(quickstart()), Not(HasSubstr("instructions")));
}

TEST(Table, MarksAFractionThatNoReadCanReach) {
  std::vector<Json> records = quickstart();
  records[1]["work"]["bandwidth_fraction"] = 1.04;
  EXPECT_THAT(table(records), AllOf(HasSubstr("104.0 "), Not(HasSubstr("‡"))));
  records[1]["work"]["bandwidth_fraction"] = 1.06;
  EXPECT_THAT(table(records), AllOf(HasSubstr("106.0‡"), HasSubstr("\n‡: faster")));
}

TEST(Table, ComparesWithTheFirstEngineWhereRecomputeIsMissing) {
  std::vector<Json> records = quickstart();
  records.erase(records.begin());
  EXPECT_THAT(table(records), HasSubstr("speed-up against contiguous"));
  EXPECT_THAT(line_with(table(records), "fp16"), HasSubstr("1.250"));
}

TEST(Table, AFailedBaselineIsNoBaseline) {
  std::vector<Json> records = quickstart();
  records[0]["status"] = "failed";
  records[0]["reason"] = "killed by signal 9";
  EXPECT_THAT(table(records), HasSubstr("speed-up against contiguous"));
}

TEST(Table, SpeedUpIsAtEqualLengthsOnly) {
  std::vector<Json> records = quickstart();
  records[1]["case"]["gen_len"] = 100;
  const std::string text = table(records);
  EXPECT_TRUE(line_with(text, "contiguous").ends_with("—"));
  EXPECT_TRUE(line_with(text, "fp16").ends_with("100.0"));
}

TEST(Table, ColumnsLineUpThoughBytesAndCharactersDiffer) {
  std::vector<Json> records = quickstart();
  records[2]["accuracy"]["correct"]["passed"] = nullptr;  // — in place of ✓
  records[2]["latency"]["itl_ms"]["p99"] = nullptr;
  const std::vector<std::string> lines = lines_of(table(records));
  const size_t width = columns_of(lines[4]);  // the rule
  for (size_t i = 5; i < 8; ++i) EXPECT_EQ(columns_of(lines[i]), width) << lines[i];
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 140u) << line;
}

TEST(Table, RowsThatAreNotOkShowStatusAndReasonOnly) {
  std::vector<Json> records = quickstart();
  records.push_back(bad("paged:16/f32", "failed", "worker was killed\nby signal 9"));
  records.push_back(bad("contiguous/int4:g32", "invalid", std::string(300, 'x')));
  const std::string text = table(records);
  const std::string failed = line_with(text, "paged:16/f32");
  EXPECT_THAT(failed, AllOf(HasSubstr("failed: worker was killed by signal 9"),
                            Not(HasSubstr("2.00 MiB"))));
  const std::string invalid = line_with(text, "contiguous/int4:g32");
  EXPECT_THAT(invalid, HasSubstr("invalid: xxx"));
  EXPECT_TRUE(invalid.ends_with("…"));
  EXPECT_LE(columns_of(invalid), 140u);
}

TEST(Table, ARowThatMissesItsGateShowsItsFiguresAndTheGate) {
  std::vector<Json> records = quickstart();
  records[2]["status"] = "invalid";
  records[2]["reason"] = "attend_rel_rms 0.00042 misses its gate of ≤ 0.0001";
  records[2]["accuracy"]["loss"]["passed"] = false;
  const std::string note = "fp16, 0+511: invalid: attend_rel_rms 0.00042 misses its gate of";
  const std::string text = table(records);
  EXPECT_THAT(line_with(text, "fp16"), AllOf(HasSubstr("1250"), HasSubstr("attn 4.2e-04 ✗"),
                                             HasSubstr("100.0"), Not(HasSubstr("invalid"))));
  EXPECT_THAT(text, HasSubstr("\n" + note));
  EXPECT_THAT(markdown(records), AllOf(HasSubstr("| 1250 |"), HasSubstr("\n\n" + note)));

  records[2]["accuracy"]["correct"]["passed"] = false;  // wrong: what it took means nothing
  EXPECT_THAT(line_with(table(records), "fp16"),
              AllOf(HasSubstr("invalid: attend_rel_rms"), Not(HasSubstr("1250"))));
}

TEST(Table, AGateMissIsNoBaseline) {
  std::vector<Json> records = {row("contiguous/f16", "fp16", 10), row("contiguous/f32", "", 20)};
  records[0]["status"] = "invalid";
  EXPECT_THAT(table(records), HasSubstr("speed-up against contiguous/f32"));
}

TEST(Table, RatiosOfFewRoundsAreRough) {
  std::vector<Json> records = quickstart();
  EXPECT_THAT(table(records), Not(HasSubstr("~")));
  for (Json& record : records) record["sampling"]["rounds"] = 5;
  records[2]["throughput"]["decode_tok_per_s"] = 12.5 * 137.2;
  const std::string text = table(records);
  EXPECT_TRUE(line_with(text, "contiguous").ends_with(" ~80")) << text;
  EXPECT_TRUE(line_with(text, "fp16").ends_with(" ~140"));
  EXPECT_TRUE(line_with(text, "recompute").ends_with(" 1")) << "the baseline itself";
  EXPECT_THAT(text, AllOf(HasSubstr("~97× faster"), HasSubstr("~: of fewer than 6 rounds")));
}

TEST(Table, NamesTheFormatsWithGenericKernels) {
  std::vector<Json> records = quickstart();
  EXPECT_THAT(table(records), Not(HasSubstr("generic kernels")));
  records[1]["kernel"] = records[2]["kernel"] = "generic";
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(text, HasSubstr("generic kernels decode to f32 first"));
    EXPECT_THAT(text, HasSubstr("kernels of the same formats: contiguous/f32, contiguous/f16."));
  }
}

TEST(Headings, NameAnInnerWidthOnlyWhereOneModelHasSeveral) {
  std::vector<Json> records = quickstart();
  records[0]["case"]["ffn"] = records[1]["case"]["ffn"] = 1536;
  records[2]["case"]["ffn"] = 3072;
  records[2]["case"]["model"] = "gpt2";
  EXPECT_THAT(headings(records)[0], Not(HasSubstr("ffn")));
  records[1]["case"]["ffn"] = 2048;
  EXPECT_THAT(headings(records)[1], HasSubstr("· ffn 2048"));
}

TEST(Headings, AreThoseOfTheTable) {
  std::vector<Json> records = quickstart();
  records[1]["case"]["batch"] = 4;
  const std::vector<std::string> texts = headings(records);
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_THAT(texts[1], AllOf(HasSubstr("heads 8:2 of 64"), HasSubstr("batch 4")));
  EXPECT_EQ(lines_of(table(records))[0], texts[0]);
}

TEST(Table, WholeRunsHaveSecondsGrowthAndRatio) {
  std::vector<Json> records = quickstart();
  std::vector<double> gaps;
  double ms = 0.1;
  for (int n = 2; n <= 511; ++n) gaps.push_back(0.1 * n), ms += 0.1 * n;
  records[0]["samples"]["itl_ms"] = gaps;
  records[0]["latency"]["ttft_ms"] = to_json(summarize(std::vector{0.1}));
  records[0]["latency"]["e2e_ms"] = to_json(summarize(std::vector{ms}));
  const std::string text = table(records);
  EXPECT_THAT(text, HasSubstr("whole run of 0+511: recompute 13.08 s (slope 2.0), contiguous "
                              "0.5225 s (slope 1.0, 25.04× faster), fp16 0.4205 s"));
  EXPECT_THAT(markdown(records), HasSubstr("\nwhole run of 0+511: recompute 13.08 s"));
}

TEST(Table, ASlowerRunIsSaidToBeSlower) {
  std::vector<Json> records = {row("contiguous/f32", "contiguous", 10),
                               row("contiguous/f16", "fp16", 5)};
  EXPECT_THAT(table(records), HasSubstr("(slope 1.0, 2.000× slower)"));
}

TEST(Table, GrowthNeedsAnEmptyStartAndLength) {
  std::vector<Json> records = quickstart();
  for (Json& record : records) record["case"]["prompt_len"] = 100;
  EXPECT_THAT(table(records), AllOf(HasSubstr("whole run of 100+511"), Not(HasSubstr("(slope"))));
  for (Json& record : records) {
    record["case"]["prompt_len"] = 0;
    record["case"]["gen_len"] = 8;
  }
  EXPECT_THAT(table(records), Not(HasSubstr("(slope")));
}

TEST(Table, GapsThatStandForSeveralGrowAlike) {
  std::vector<Json> records = {row("contiguous/f32", "contiguous", 10)};
  records[0]["samples"]["itl_ms"] = std::vector<double>(170, 100.0);
  records[0]["samples"]["itl_stride"] = 3;
  EXPECT_THAT(table(records), HasSubstr("(slope 1.0)"));
}

TEST(Table, AttentionHasNoWholeRunAndNoTokens) {
  std::vector<Json> records = quickstart();
  for (Json& record : records) {
    record["case"]["level"] = "attention";
    record["latency"]["e2e_ms"] = record["latency"]["ttft_ms"] = nullptr;
    record["throughput"]["decode_tok_per_s"] = 8.0 * 1250;  // a batch of 8
  }
  const std::string text = table(records);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("whole run")), Not(HasSubstr("tok/s")),
                          Not(HasSubstr("TTFT")), Not(HasSubstr("TPOT")), HasSubstr("  1/s  ")));
  EXPECT_THAT(line_with(text, "fp16"), AllOf(HasSubstr(" 1250 "), Not(HasSubstr("10000"))));
}

TEST(Table, ColumnsThatNoRowFillsAndTheirDefinitionsAreLeftOut) {
  std::vector<Json> records = quickstart();
  EXPECT_THAT(table(records), AllOf(HasSubstr("TTFT: first"), HasSubstr("loss, attn")));
  for (Json& record : records) {
    record["latency"]["ttft_ms"] = nullptr;
    record["accuracy"]["loss"] = empty_record()["accuracy"]["loss"];
  }
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("TTFT")), Not(HasSubstr("loss")), HasSubstr("ITL: ")));
  }
}

TEST(Legend, AQuietRunSaysNothingOfNoise) {
  EXPECT_THAT(table(quickstart()), AllOf(Not(HasSubstr("noise")), Not(HasSubstr("§"))));
  std::vector<Json> records = quickstart();
  for (Json& record : records) record["env"]["vm"] = true;
  EXPECT_THAT(table(records), AllOf(Not(HasSubstr("noise")), HasSubstr(", in a virtual machine")));
}

TEST(Legend, WhatAllRowsShareIsSaidOnceAndMarksNone) {
  std::vector<Json> records = quickstart();
  for (Json& record : records) record["env"]["unstable"] = {"CPU governor powersave"};
  records.push_back(bad("paged:16/f32", "failed", "died"));  // has no timings to doubt
  const std::string text = table(records);
  EXPECT_THAT(text, AllOf(HasSubstr("\nnoise, in every row: CPU governor powersave\n"),
                          Not(HasSubstr("§"))));
}

TEST(Legend, DisturbedRowsAreMarkedAndCounted) {
  std::vector<Json> records = quickstart();
  for (Json& record : records) record["env"]["unstable"] = {"load before"};
  records[0]["env"]["unstable"].push_back("steal");
  records[2]["env"]["unstable"].push_back("steal");
  records[2]["env"]["unstable"].push_back("drift");
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(
        text, AllOf(HasSubstr("noise, in every row: load before\n"),
                    HasSubstr("§: noise in 2 of 3 rows, figures in their `probes`: "
                              "steal (2); drift (1)\n"),
                    HasSubstr("recompute§ "), HasSubstr("fp16§ "), Not(HasSubstr("contiguous§"))));
  }
}

TEST(Legend, CountsOutlierRounds) {
  std::vector<Json> records = quickstart();
  records[1]["samples"]["outlier_rounds"] = {0, 3};
  EXPECT_THAT(table(records), HasSubstr("outlier rounds: 2, in 1 of 3 rows; they count"));
}

TEST(Table, NamesEnginesAlikeWhereNotAllHavePresets) {
  std::vector<Json> records = quickstart();
  records.push_back(row("contiguous/int8:g32", "", 1300));
  records.back()["case"]["preset"] = nullptr;
  const std::string text = table(records);
  EXPECT_THAT(line_with(text, "contiguous/f16 "), HasSubstr("1250"));
  EXPECT_THAT(line_with(text, "contiguous/int8:g32 "), HasSubstr("1300"));
  EXPECT_EQ(line_with(text, "fp16 "), "");
  EXPECT_THAT(line_with(text, "whole run"), HasSubstr("contiguous/f32 0.5225 s"));
  EXPECT_THAT(text, HasSubstr("engines: contiguous = contiguous/f32, fp16 = contiguous/f16\n"));
}

TEST(Headings, NameUnusualSettingsThoughAllRowsHaveThem) {
  std::vector<Json> records = quickstart();
  EXPECT_THAT(headings(records)[0], AllOf(Not(HasSubstr("pool_order")), Not(HasSubstr("pin"))));
  for (Json& record : records) {
    record["case"].update({{"pool_order", "shuffled"}, {"repeat_kv", true}, {"pin", true}});
  }
  EXPECT_THAT(headings(records)[0], AllOf(HasSubstr("· pool_order shuffled"),
                                          HasSubstr("· repeat_kv true"), HasSubstr("· pin true")));
}

TEST(Table, RatiosBetweenRowsOfDifferentGroupRunsAreMarked) {
  std::vector<Json> records = quickstart();
  EXPECT_THAT(table(records), Not(HasSubstr("†")));
  records[2]["group_run"] = "group@later";
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("100.0†"), HasSubstr("97.06× faster†"),
                            HasSubstr("†: not measured side by side"), Not(HasSubstr("80.00†"))));
  }
}

TEST(Table, ARunThatGaveNothingIsStillATable) {
  const std::vector<Json> records = {bad("paged:16/f32", "skipped", "no CUDA device")};
  EXPECT_THAT(table(records),
              AllOf(HasSubstr("skipped: no CUDA device"), Not(HasSubstr("speed-up against"))));
  EXPECT_EQ(table({}), "no records\n");
}

TEST(Table, GroupsBySettingsAndNamesThoseThatVary) {
  std::vector<Json> records = quickstart();
  records.push_back(row("contiguous/f32", "contiguous", 500));
  records.back()["case"]["repeat_kv"] = true;
  std::swap(records[1], records[3]);
  const std::string text = table(records);
  EXPECT_THAT(text, HasSubstr("repeat_kv true"));
  EXPECT_THAT(text, HasSubstr("repeat_kv false"));
  EXPECT_THAT(text, Not(HasSubstr("seed 1")));  // the same everywhere
  // A group's rows stand together: three of the first, then the other.
  EXPECT_LT(text.find("fp16"), text.find("repeat_kv true"));
}

TEST(Table, AGateDoesNotPartAnEngineFromItsGroup) {
  std::vector<Json> records = quickstart();
  records[2]["case"]["gate"] = {{"kld_mean_max", 1e-4}};
  const std::string text = table(records);
  EXPECT_THAT(text, Not(HasSubstr("kld_mean_max")));
  EXPECT_THAT(text, Not(HasSubstr("speed-up against fp16")));
}

TEST(Table, RowsOfAGroupAreInOrderOfContext) {
  std::vector<Json> records;
  for (int prompt : {4096, 1024}) {
    for (const char* engine : {"contiguous/f32", "contiguous/f16"}) {
      records.push_back(row(engine, "", 10));
      records.back()["case"]["prompt_len"] = prompt;
    }
  }
  const std::string text = table(records);
  EXPECT_LT(text.find("1024+511"), text.find("4096+511"));
  EXPECT_LT(text.find("contiguous/f32"), text.find("contiguous/f16"));
  EXPECT_EQ(text.find("level model"), text.rfind("level model"));
}

TEST(Table, NullIsADash) {
  std::vector<Json> records = {row("contiguous/f32", "", 10)};
  records[0]["throughput"]["decode_tok_per_s"] = nullptr;
  EXPECT_THAT(line_with(table(records), "contiguous/f32"), HasSubstr("0+511       —"));
}

TEST(Table, KldGoesBeforeTheErrorOfTheAttention) {
  std::vector<Json> records = {row("contiguous/f16", "fp16", 10)};
  records[0]["accuracy"]["loss"]["kld_mean"] = 2.5e-5;
  EXPECT_THAT(line_with(table(records), "fp16"), HasSubstr("KLD 2.5e-05"));
}

TEST(Markdown, HasARowEachAndAsManyCellsAsHeadings) {
  std::vector<Json> records = quickstart();
  records.push_back(bad("paged:16/f32", "failed", "a|b"));
  const std::string text = markdown(records);
  const auto bars = [](const std::string& line) {
    return std::count(line.begin(), line.end(), '|');
  };
  const auto headings = bars(line_with(text, "| engine"));
  EXPECT_EQ(headings, 14);
  EXPECT_EQ(bars(line_with(text, "|:---")), headings);
  EXPECT_EQ(bars(line_with(text, "| contiguous/f16")), headings);
  EXPECT_EQ(bars(line_with(text, "| paged:16/f32")), headings + 1);  // one is the reason's
  EXPECT_THAT(text, HasSubstr("failed: a\\|b"));
}

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Reports, AreTheSameInACommaLocale) {
  const std::string before = csv(quickstart()) + table(quickstart());
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  const std::string after = csv(quickstart()) + table(quickstart());
  std::locale::global(old);
  EXPECT_EQ(before, after);
}

TEST(Format, BytesHaveThreeDigitsAndBinaryUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(human_bytes(1024.0 * 1024 * 1024 * 1.25), "1.25 GiB");
  EXPECT_EQ(human_bytes(34.5), "34.5 B");
}

TEST(Format, NumbersHaveFourDigits) {
  EXPECT_EQ(human_number(0), "0.000");
  EXPECT_EQ(human_number(12345.6), "12346");
  EXPECT_EQ(human_number(123.456), "123.5");
  EXPECT_EQ(human_number(0.0123456), "0.01235");
  EXPECT_EQ(human_number(1.2e-5), "1.20e-05");
  EXPECT_EQ(rough_number(0), "0");
  EXPECT_EQ(rough_number(137.2), "140");
  EXPECT_EQ(rough_number(99.7), "100");
  EXPECT_EQ(rough_number(46.2), "46");
  EXPECT_EQ(rough_number(1.04), "1.0");
  EXPECT_EQ(rough_number(0.987), "0.99");
  EXPECT_EQ(human_error(0), "0");
  EXPECT_EQ(human_error(0.031), "3.1e-02");
}

TEST(Format, ClipsAndPadsByCharacter) {
  EXPECT_EQ(clip("×××××", 3), "××…");
  EXPECT_EQ(clip("×××", 3), "×××");
  EXPECT_EQ(pad_left("×", 3), "  ×");
  EXPECT_EQ(pad_right("×", 3), "×  ");
}

}  // namespace
}  // namespace kvmark
