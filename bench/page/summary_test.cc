#include "bench/page/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "bench/report/report_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kFact = Sentence::Kind::fact;
constexpr auto kUndecided = Sentence::Kind::undecided;
constexpr auto kWarning = Sentence::Kind::warning;

// A row at level model with a prompt, measured in turns with the others; `ms` of its rounds.
Json timed(const std::string& engine, int64_t prompt, const std::vector<double>& ms) {
  Json r = row(engine, "", 1000);
  r["case"]["prompt_len"] = prompt;
  r["case"]["gen_len"] = 8;
  r["sampling"] = {{"rounds", ms.size()}, {"interleaved", true}, {"stop_reason", "cap"}};
  r["samples"]["round"] = ms;
  r["accuracy"]["loss"]["attend_rel_rms"] = 0;
  return r;
}

// Seven rounds of about `ms`.
std::vector<double> about(double ms) {
  return {ms, 1.01 * ms, 0.99 * ms, ms, 1.01 * ms, 0.99 * ms, ms};
}

Json with_bytes(Json record, double bytes) {
  record["memory"]["kv_bytes_per_token"] = bytes;
  return record;
}

std::vector<std::string> texts_of(const std::vector<Json>& records, Sentence::Kind kind) {
  std::vector<std::string> texts;
  for (const Sentence& s : summary(records)) {
    if (s.kind == kind) texts.push_back(s.text);
  }
  return texts;
}

std::string all_of(const std::vector<Json>& records) {
  std::string text;
  for (const Sentence& s : summary(records)) text += s.text + "\n";
  return text;
}

// ---- Bytes ----

TEST(Summary, BytesAreAgainstF16InOnePiece) {
  const std::vector<Json> records = {with_bytes(timed("contiguous/f32", 64, {1}), 2048),
                                     with_bytes(timed("contiguous/f16", 64, {1}), 1024),
                                     with_bytes(timed("paged:16/f16", 64, {1}), 1026),
                                     with_bytes(timed("contiguous/int8:g32", 64, {1}), 544),
                                     with_bytes(timed("paged:16/int8:g32", 64, {1}), 546),
                                     with_bytes(timed("contiguous/int4:g32", 64, {1}), 288)};
  EXPECT_THAT(summary(records).front().text,
              "int8:g32 keeps a token in 0.53 of f16's bytes: 1.88 times the context in the same "
              "memory; int4:g32 in 0.28: 3.56 times.");
}

TEST(Summary, WithoutF16TheFirstEngineWithACacheIsTheBaseline) {
  std::vector<Json> records = {with_bytes(timed("recompute", 64, {1}), 0),
                               with_bytes(timed("contiguous/f32", 64, {1}), 2048),
                               with_bytes(timed("contiguous/int8:g32", 64, {1}), 544)};
  EXPECT_THAT(all_of(records), StartsWith("int8:g32 keeps a token in 0.27 of f32's bytes"));
  records[1]["case"]["preset"] = "contiguous";
  records[2]["case"]["preset"] = "compressed";
  EXPECT_THAT(all_of(records), StartsWith("int8:g32 keeps a token in 0.27 of f32's bytes"))
      << "f32 is not to be called \"contiguous\" beside contiguous/int8:g32";
}

TEST(Summary, FormatsOfAsManyBytesAreNotPraised) {
  EXPECT_THAT(all_of({with_bytes(timed("contiguous/f16", 64, {1}), 1024),
                      with_bytes(timed("contiguous/bf16", 64, {1}), 1024),
                      with_bytes(timed("contiguous/f32", 64, {1}), 2048)}),
              Not(HasSubstr("keeps a token")));
}

TEST(Summary, ARowThatMissesItsGateIsNotPraised) {
  std::vector<Json> records = {with_bytes(timed("contiguous/f16", 64, about(10)), 1024),
                               with_bytes(timed("contiguous/int4:g32", 64, about(5)), 288)};
  ASSERT_THAT(all_of(records), HasSubstr("int4:g32"));
  records[1]["status"] = "invalid";
  records[1]["reason"] = "it misses its gate";
  EXPECT_THAT(all_of(records), Not(HasSubstr("int4:g32")));
  EXPECT_THAT(texts_of(records, kWarning), ElementsAre(HasSubstr("it misses its gate")));
}

TEST(Summary, MachinesAreNotHeldAgainstEachOther) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  ASSERT_THAT(all_of(records), HasSubstr("as fast as"));
  records[1]["env"]["cpu"] = "Another CPU";
  EXPECT_THAT(all_of(records), Not(HasSubstr("as fast as")));
}

// ---- Speed ----

TEST(Summary, SpeedsAreToldWithTheirInterval) {
  const std::vector<Json> records = {timed("contiguous/f16", 16384, about(10)),
                                     timed("contiguous/f32", 16384, about(20)),
                                     timed("contiguous/int8:g32", 16384, about(5))};
  EXPECT_THAT(texts_of(records, kFact),
              Contains("At 16,384 tokens of context int8:g32 is 2.00 times as fast as f16 (95 % "
                       "interval 2.00–2.00), f32 0.50 times (0.50–0.50)."));
  EXPECT_THAT(texts_of(records, kUndecided), IsEmpty());
}

TEST(Summary, AnIntervalThatHoldsOneDecidesNothing) {
  const std::vector<Json> records = {
      timed("contiguous/f16", 64, {10, 10, 10, 10, 10, 10, 10}),
      timed("contiguous/int8:g32", 64, {9, 12, 11, 9.5, 10, 8, 11.5})};
  EXPECT_THAT(texts_of(records, kUndecided),
              ElementsAre("Not decided at 64 tokens of context, since the 95 % interval holds 1: "
                          "int8:g32 (0.83–1.25 times as fast as f16)."));
  EXPECT_THAT(texts_of(records, kFact), Not(Contains(HasSubstr("as fast"))));
}

TEST(Summary, FewRoundsAreUndecided) {
  const std::vector<Json> records = {timed("contiguous/f16", 64, {10, 10, 10}),
                                     timed("contiguous/int8:g32", 64, {5, 5, 5}),
                                     timed("contiguous/int4:g32", 64, {8, 8, 8})};
  EXPECT_THAT(texts_of(records, kUndecided),
              ElementsAre("At 64 tokens of context int8:g32 is about 2.0 times as fast as f16, "
                          "int4:g32 about 1.25 times; measured in 3 rounds: no interval."));
  EXPECT_THAT(texts_of(records, kFact), Not(Contains(HasSubstr("as fast"))));
}

TEST(Summary, RowsThatTookNoTurnsAreUndecided) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  records[1]["group_run"] = "another";
  EXPECT_THAT(texts_of(records, kUndecided),
              ElementsAre(HasSubstr("not measured side by side: no interval")));
}

TEST(Summary, RowsOfNoGroupTookNoTurns) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  for (Json& record : records) record["group_run"] = nullptr;
  EXPECT_THAT(texts_of(records, kUndecided),
              ElementsAre(HasSubstr("not measured side by side: no interval")));
}

TEST(Summary, TimesThatNoClockTellsHaveNoRatio) {
  EXPECT_THAT(all_of({timed("contiguous/f16", 64, about(10)),
                      timed("contiguous/int8:g32", 64, std::vector<double>(7, 5e-324))}),
              Not(HasSubstr("as fast")));
}

TEST(Summary, RowsAreHeldAgainstTheirOwnExecution) {
  std::vector<Json> records = {
      timed("contiguous/f16", 64, about(10)), timed("contiguous/int8:g32", 64, about(10)),
      timed("contiguous/f16", 64, about(30)), timed("contiguous/int8:g32", 64, about(10))};
  for (Json* again : {&records[2], &records[3]}) (*again)["group_run"] = "another";
  EXPECT_THAT(texts_of(records, kFact), Contains(HasSubstr("int8:g32 is 3.00 times as fast")));
}

TEST(Summary, AttentionAloneIsCalledSo) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  for (Json& record : records) record["case"]["level"] = "attention";
  EXPECT_THAT(texts_of(records, kFact), Contains(StartsWith("Attention alone: At 64 tokens")));
}

TEST(Summary, WhatHardlyDiffersIsAsFast) {
  std::vector<double> a_little_faster = about(10);
  for (double& ms : a_little_faster) ms *= 0.996;
  const std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                                     timed("paged:16/f16", 64, a_little_faster)};
  EXPECT_THAT(texts_of(records, kFact),
              Contains("At 64 tokens of context as fast as f16 to within 1 %: paged:16/f16 "
                       "(1.004–1.004)."));
  EXPECT_THAT(all_of(records), Not(HasSubstr("times as fast")));
}

TEST(Summary, AnIntervalThatEndsBesideOneDoesNotReadAsOne) {
  const std::vector<Json> records = {
      timed("contiguous/f16", 64, {10.003, 10.5, 10.5, 10.5, 10.5, 10.5, 11}),
      timed("contiguous/int8:g32", 64, std::vector<double>(7, 10))};
  EXPECT_THAT(texts_of(records, kFact), Contains(HasSubstr("(95 % interval 1.0003–1.10)")));
}

TEST(Summary, AGenericKernelIsNotHeldAgainstATunedOne) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int4:g32", 64, about(20))};
  records[0]["kernel"] = "AVX2";
  records[1]["kernel"] = "generic";
  EXPECT_THAT(all_of(records), Not(HasSubstr("as fast")));
  records[0]["kernel"] = "generic";
  EXPECT_THAT(all_of(records),
              HasSubstr("Generic kernels: At 64 tokens of context int4:g32 is 0.50 times as fast"))
      << "two generic kernels can be compared, as such";
}

TEST(Summary, RunsOfOneTokenHaveNoSpeed) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  for (Json& record : records) record["case"]["gen_len"] = 1;
  EXPECT_THAT(all_of(records), Not(HasSubstr("as fast"))) << "its rounds are prefills";
}

TEST(Summary, NoTimesNoSpeed) {
  const std::vector<Json> records = {timed("contiguous/f16", 64, {}),
                                     timed("contiguous/int8:g32", 64, {})};
  EXPECT_THAT(all_of(records), Not(HasSubstr("as fast")));
}

// ---- From which context on ----

TEST(Summary, AFormatPaysFromTheContextFromWhichItStaysFaster) {
  std::vector<Json> records;
  const std::pair<int64_t, double> times_of_int8[] = {{1024, 5}, {2048, 15}, {4096, 5}, {8192, 5}};
  for (const auto& [context, ms] : times_of_int8) {
    records.push_back(timed("contiguous/f16", context, about(10)));
    records.push_back(timed("contiguous/int8:g32", context, about(ms)));
    records.push_back(timed("contiguous/int4:g32", context, about(4)));
    records.push_back(timed("contiguous/f32", context, about(20)));
  }
  EXPECT_THAT(
      texts_of(records, kFact),
      Contains("Of the contexts measured, 1,024 to 8,192 tokens, int4:g32 is faster than f16 at "
               "all of them; int8:g32 from 4,096 on."));
}

TEST(Summary, AContextCountsWhereAllItsRunsAreFaster) {
  std::vector<Json> records;
  const std::tuple<int64_t, int64_t, double> runs[] = {
      {1024, 8, 15}, {2048, 8, 5}, {2048, 64, 15}, {4096, 8, 5}, {8192, 8, 5}};
  for (const auto& [context, generated, ms] : runs) {
    records.push_back(timed("contiguous/f16", context, about(10)));
    records.push_back(timed("contiguous/int8:g32", context, about(ms)));
    for (size_t i : {records.size() - 2, records.size() - 1}) {
      records[i]["case"]["gen_len"] = generated;
    }
  }
  EXPECT_THAT(all_of(records), HasSubstr("int8:g32 is faster than f16 from 4,096 on."));
}

TEST(Summary, WhatIsNotFasterAtTheLongestContextDoesNotPay) {
  const std::vector<Json> records = {
      timed("contiguous/f16", 1024, about(10)), timed("contiguous/int8:g32", 1024, about(5)),
      timed("contiguous/f16", 4096, about(10)), timed("contiguous/int8:g32", 4096, about(10))};
  EXPECT_THAT(all_of(records), Not(HasSubstr("contexts measured")));
}

TEST(Summary, OneContextIsNotFromThereOn) {
  const std::vector<Json> records = {
      timed("contiguous/f16", 1024, about(10)), timed("contiguous/int8:g32", 1024, about(10)),
      timed("contiguous/f16", 4096, about(10)), timed("contiguous/int8:g32", 4096, about(5))};
  EXPECT_THAT(all_of(records), HasSubstr("int8:g32 is faster than f16 at 4,096 alone."));
}

TEST(Summary, OneContextIsNoCurve) {
  const std::vector<Json> records = {timed("contiguous/f16", 1024, about(10)),
                                     timed("contiguous/int8:g32", 1024, about(5))};
  EXPECT_THAT(all_of(records), Not(HasSubstr("contexts measured")));
}

TEST(Summary, LayersMayKeepTheWorkingSetConstant) {
  std::vector<Json> records;
  for (const int64_t context : {1024, 4096}) {
    for (const char* engine : {"contiguous/f16", "contiguous/int8:g32"}) {
      Json record = timed(engine, context, about(engine == std::string("contiguous/f16") ? 10 : 5));
      record["case"]["level"] = "attention";
      record["case"]["layers"] = 65536 / context;
      records.push_back(std::move(record));
    }
  }
  EXPECT_THAT(all_of(records), HasSubstr("int8:g32 is faster than f16 at all of them."));
}

// ---- Loss ----

TEST(Summary, SeededWeightsHaveNoDivergence) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int4:g32", 64, about(5))};
  records[0]["accuracy"]["loss"]["attend_rel_rms"] = 0.00042;
  records[1]["accuracy"]["loss"]["attend_rel_rms"] = 0.081;
  const std::string text = all_of(records);
  EXPECT_THAT(text, AllOf(HasSubstr("(relative RMS): f16 0.042 %, int4:g32 8.1 %."),
                          Not(HasSubstr("KLD")), Not(HasSubstr("most likely"))));
}

TEST(Summary, AScoredTextTellsDivergence) {
  std::vector<Json> records = {timed("contiguous/f32", 64, about(10)),
                               timed("contiguous/int4:g32", 64, about(5))};
  records[0]["accuracy"]["loss"].update({{"kld_mean", 0.0}, {"top1_agreement", 1.0}});
  records[1]["accuracy"]["loss"].update(
      {{"kld_mean", 0.0123}, {"top1_agreement", 0.984}, {"attend_rel_rms", 0.08}});
  const std::string text = all_of(records);
  EXPECT_THAT(text, HasSubstr("(KLD): int4:g32 0.012 nats with the same most likely token at "
                              "98.4 % of the positions."));
  EXPECT_THAT(text, Not(HasSubstr("relative RMS"))) << "one of them is enough";
  records[1]["accuracy"]["loss"]["kld_mean"] = 4.5e-7;
  EXPECT_THAT(all_of(records), HasSubstr("int4:g32 under 0.0001 nats with the same"));
  records[1]["accuracy"]["loss"]["top1_agreement"] = 0.9996;
  EXPECT_THAT(all_of(records), HasSubstr("token at more than 99.9 % of the positions"));
}

TEST(Summary, TheOrderOfSumsIsNoLoss) {
  std::vector<Json> records = {timed("contiguous/f32", 64, about(10)),
                               timed("paged:16/f32", 64, about(5))};
  records[1]["accuracy"]["loss"]["attend_rel_rms"] = 2e-6;
  EXPECT_THAT(all_of(records), Not(HasSubstr("number formats lose")));
}

// ---- Recomputing ----

// Runs of 511 tokens, whose rounds took turns.
std::vector<Json> with_and_without(const std::vector<double>& ms, const std::vector<double>& fast) {
  std::vector<Json> records = {row("recompute", "", 10), row("contiguous/f32", "", 1000)};
  for (size_t i = 0; i < 2; ++i) {
    records[i]["samples"]["round"] = i == 0 ? ms : fast;
    records[i]["sampling"]["interleaved"] = true;
  }
  return records;
}

TEST(Summary, RecomputingIsToldWithItsIntervalAndHowItGrows) {
  std::vector<Json> records = with_and_without(about(100), about(1));
  std::vector<double> gaps;
  for (int i = 0; i < 510; ++i) gaps.push_back(0.1 * i);
  records[0]["samples"]["itl_ms"] = gaps;
  EXPECT_THAT(texts_of(records, kFact),
              Contains(AllOf(StartsWith("Without a cache 511 tokens took 51.01 s, with f32 0.5225 "
                                        "s; a step took 100.00 times as long (95 % "
                                        "interval 100.00–100.00)."),
                             HasSubstr("to the power of 2.00 without a cache and of 0.97"))));
}

TEST(Summary, RecomputingWithoutAnIntervalIsAFactWhereItIsFarBehind) {
  EXPECT_THAT(texts_of(with_and_without({98}, {1}), kFact),
              Contains(HasSubstr("0.5225 s; a step took about 98 times as long (measured in 1 "
                                 "round: no interval).")));
  EXPECT_THAT(texts_of(with_and_without({1.9}, {1}), kUndecided),
              Contains(HasSubstr("a step took about 1.90 times as long")));
  EXPECT_THAT(
      texts_of(with_and_without({10, 9, 11, 12, 8, 10, 9}, {9, 10, 10, 10, 10, 9, 10}), kUndecided),
      Contains(HasSubstr("a step took 1.10 times as long (95 % interval 0.80–1.20)")));
}

TEST(Summary, RecomputingIsHeldAgainstARowOfItsTurn) {
  std::vector<Json> records = with_and_without(about(100), about(1));
  records.push_back(records[1]);
  records[2]["group_run"] = "another";
  records[2]["samples"]["round"] = about(50);
  EXPECT_THAT(all_of(records), HasSubstr("100.00 times as long"));
  records.erase(records.begin() + 1);
  EXPECT_THAT(all_of(records),
              HasSubstr("about 2.0 times as long (not measured side by side: no interval)"));
}

TEST(Summary, ABatchIsTold) {
  std::vector<Json> records = with_and_without(about(100), about(1));
  for (Json& record : records) record["case"]["batch"] = 4;
  EXPECT_THAT(all_of(records), HasSubstr("511 tokens of each of 4 sequences took 51.01 s"));
}

TEST(Summary, BehindAPromptNoGrowthIsTold) {
  std::vector<Json> records = {row("recompute", "", 10), row("contiguous/f32", "", 1000)};
  for (Json& record : records) record["case"]["prompt_len"] = 128;
  EXPECT_THAT(all_of(records),
              AllOf(HasSubstr("Without a cache 511 tokens after a prompt of 128 took 51.01 s"),
                    Not(HasSubstr("power"))));
}

// ---- Several settings, and rows that are not ok ----

TEST(Summary, TheSettingWithMostRowsIsToldAndNamed) {
  std::vector<Json> records = {timed("contiguous/f16", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(20))};
  for (const char* engine : {"contiguous/f16", "contiguous/int8:g32", "paged:16/f16"}) {
    const bool is_base = engine == std::string("contiguous/f16");
    records.push_back(timed(engine, 64, about(is_base ? 10 : 5)));
    records.back()["case"]["threads"] = 1;
  }
  EXPECT_THAT(
      texts_of(records, kFact),
      Contains("1 thread: At 64 tokens of context int8:g32 is 2.00 times as fast as f16 (95 "
               "% interval 2.00–2.00), paged:16/f16 2.00 times (2.00–2.00)."));
  EXPECT_EQ(summary(records).back().text, "There are 2 settings; others may say otherwise.");
}

TEST(Summary, WhatWasScoredTellsSettingsApart) {
  std::vector<Json> records;
  for (const char* text : {"alice.txt", "bob.txt"}) {
    for (const char* engine : {"contiguous/f16", "contiguous/int8:g32"}) {
      records.push_back(timed(engine, 64, about(10)));
      records.back()["case"]["score"] = {{"text", text}, {"positions", 1024}};
      records.back()["accuracy"]["loss"]["kld_mean"] = 0.01;
    }
  }
  EXPECT_THAT(all_of(records), HasSubstr("scored on alice.txt: How far"));
}

TEST(Summary, WhatOnlyLevelsDifferInIsNotSaid) {
  std::vector<Json> records;
  for (const char* level : {"attention", "model"}) {
    for (const char* engine : {"contiguous/f16", "contiguous/int8:g32"}) {
      records.push_back(timed(engine, 64, about(engine == std::string("contiguous/f16") ? 9 : 5)));
      records.back()["case"].update({{"level", level}, {"layers", *level == 'm' ? 4 : 2}});
    }
  }
  EXPECT_THAT(texts_of(records, kFact), Contains(StartsWith("Whole steps: At 64 tokens")))
      << "the layers of the attention alone are others, of no consequence here";
}

TEST(Summary, WholeStepsAreToldBeforeTheAttentionAlone) {
  std::vector<Json> records;
  for (const char* level : {"attention", "model"}) {
    for (const char* engine : {"contiguous/f16", "contiguous/int8:g32"}) {
      records.push_back(timed(engine, 64, about(engine == std::string("contiguous/f16") ? 9 : 5)));
      records.back()["case"]["level"] = level;
    }
  }
  EXPECT_THAT(texts_of(records, kFact),
              Contains(StartsWith("Whole steps: At 64 tokens of context int8:g32 is 1.80 times")));
  EXPECT_THAT(all_of(records), Not(HasSubstr("Attention alone")));
}

TEST(Summary, RowsThatFailedAreCountedWithTheirReasons) {
  std::vector<Json> records = quickstart();
  records.push_back(bad("paged:16/f32", "failed", "killed by SIGKILL"));
  records.push_back(bad("paged:32/f32", "failed", "killed by SIGKILL"));
  records.push_back(bad("paged:64/f32", "skipped", "predicted to need\n40 GiB"));
  EXPECT_THAT(texts_of(records, kWarning),
              ElementsAre("2 of 6 rows failed: killed by SIGKILL (2 times). 1 of 6 rows skipped: "
                          "predicted to need 40 GiB."));
}

TEST(Summary, ManyReasonsAreCutShort) {
  std::vector<Json> records;
  for (const char* reason : {"one", "two", "three", "four"}) {
    records.push_back(bad("contiguous/f16", "failed", reason));
  }
  EXPECT_THAT(all_of(records), "4 of 4 rows failed: one; two; and 2 reasons more.\n");
}

TEST(Summary, FailedRowsAreNoBaseline) {
  std::vector<Json> records = {bad("contiguous/f16", "failed", "killed"),
                               timed("contiguous/f32", 64, about(10)),
                               timed("contiguous/int8:g32", 64, about(5))};
  EXPECT_THAT(texts_of(records, kFact), Contains(HasSubstr("times as fast as f32")));
}

TEST(Summary, ARowAloneSaysThatThereIsNothingToCompare) {
  EXPECT_THAT(texts_of({timed("contiguous/f16", 64, about(10))}, kFact),
              ElementsAre(HasSubstr("nothing here to compare")));
  EXPECT_THAT(summary({}), IsEmpty());
}

// ---- Comparison ----

TEST(Summary, TheVerdictOfAComparisonHasItsKind) {
  Comparison comparison;
  comparison.base = "before";
  comparison.now = "after";
  EXPECT_EQ(verdict_sentence(comparison).kind, kUndecided) << "nothing was compared";
  comparison.cases.resize(1);
  comparison.cases[0].base_status = comparison.cases[0].status = "ok";
  comparison.cases[0].metrics.resize(2);
  comparison.cases[0].metrics[0].verdict = Verdict::same;
  comparison.cases[0].metrics[0].field = find_record_field("memory.kv_live_bytes");
  comparison.cases[0].metrics[1].verdict = Verdict::better;
  EXPECT_EQ(verdict_sentence(comparison).kind, kFact);
  EXPECT_THAT(
      verdict_sentence(comparison).text,
      AllOf(StartsWith("after against before: no regression"), HasSubstr(" No time was judged.")));
  comparison.cases[0].metrics[1].field = find_record_field("latency.tpot_ms");
  EXPECT_THAT(verdict_sentence(comparison).text, Not(HasSubstr("No time was judged")));
  comparison.cases[0].metrics[1].verdict = Verdict::undecided;
  EXPECT_EQ(verdict_sentence(comparison).kind, kUndecided);
  comparison.cases[0].metrics[0].verdict = Verdict::worse;
  EXPECT_EQ(verdict_sentence(comparison).kind, kWarning);
}

}  // namespace
}  // namespace kvmark
