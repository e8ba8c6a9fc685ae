#include "bench/run/record_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/record/record.h"
#include "bench/run/run_testing.h"

namespace kvmark {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::ordered_json;

Json round(double tpot_ms, int steps) {
  return {{"reply", "samples"},
          {"digest", "d"},
          {"ttft_ms", 10 * tpot_ms},
          {"itl_ms", std::vector<double>(steps, tpot_ms)},
          {"attend_ms", std::vector<double>(steps, tpot_ms / 4)},
          {"tpot_ms", steps > 0 ? Json(tpot_ms) : Json()},
          {"e2e_ms", 10 * tpot_ms + steps * tpot_ms},
          {"prefill_ms", 10 * tpot_ms},
          {"decode_ms", steps * tpot_ms},
          {"profile", {{"attend_ms", tpot_ms / 4}, {"ffn_ms", tpot_ms / 2}}},
          {"probes",
           {{"wall_ms", 10 * tpot_ms + steps * tpot_ms},
            {"run_delay_ms", 0.5},
            {"major_faults", 0},
            {"lowest_core_ghz", 4 - 0.01 * tpot_ms},
            {"highest_core_ghz", 4}}}};
}

class RecordBuilderTest : public testing::Test {
 protected:
  Json build() {
    const Json record = build_record(case_, sampling_, {"run", "group"}, machine_, outcome_);
    EXPECT_THAT(validate_record(record), IsEmpty());
    return record;
  }

  Case case_ = small_case("contiguous/f32");
  Sampling sampling_;
  MachineState machine_;
  CaseOutcome outcome_;
};

TEST_F(RecordBuilderTest, NothingKnownIsNullAndValid) {
  outcome_.status = "failed";
  outcome_.reason = "killed by SIGKILL";
  const Json record = build();
  EXPECT_TRUE(record["latency"]["tpot_ms"].is_null());
  EXPECT_TRUE(record["memory"]["kv_live_bytes"].is_null());
  EXPECT_TRUE(record["accuracy"]["correct"]["passed"].is_null());
  EXPECT_TRUE(record["work"]["positions_computed"].is_null());
  EXPECT_TRUE(record["env"]["started"].is_null());
  EXPECT_EQ(record["case_id"], case_id(case_));
  EXPECT_EQ(record["case"]["engine"], "contiguous/f32");
}

TEST_F(RecordBuilderTest, LatencyIsOfRoundsAndGapsArePooled) {
  outcome_.samples = {round(2, 3), round(4, 3), round(3, 3)};
  const Json record = build();
  EXPECT_EQ(record["latency"]["tpot_ms"]["n"], 3);
  EXPECT_EQ(record["latency"]["tpot_ms"]["p50"], 3);
  EXPECT_EQ(record["latency"]["itl_ms"]["n"], 9);
  EXPECT_EQ(record["latency"]["attend_ms"]["n"], 9);
  EXPECT_EQ(record["latency"]["ttft_ms"]["max"], 40);
  EXPECT_THAT(record["samples"]["round"], ElementsAre(2, 4, 3));
  EXPECT_THAT(record["samples"]["itl_ms"], ElementsAre(3, 3, 3)) << "of the median round";
  EXPECT_EQ(record["samples"]["itl_stride"], 1);
  EXPECT_DOUBLE_EQ(record["profile"]["attend_ms"].get<double>(), 0.75);
  EXPECT_DOUBLE_EQ(record["probes"]["run_delay_ms"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(record["probes"]["lowest_core_ghz"].get<double>(), 3.96);
  EXPECT_TRUE(record["probes"]["migrations"].is_null()) << "no round has it";
}

TEST_F(RecordBuilderTest, ThroughputCountsGeneratedTokensOnly) {
  case_.batch = 2;
  outcome_.samples = {round(2, 3)};  // 3 gaps of 2 ms behind a prefill of 20 ms
  const Json record = build();
  EXPECT_DOUBLE_EQ(record["throughput"]["decode_tok_per_s_per_seq"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(record["throughput"]["decode_tok_per_s"].get<double>(), 1000);
  EXPECT_DOUBLE_EQ(record["throughput"]["prefill_tok_per_s"].get<double>(), 400);
}

TEST_F(RecordBuilderTest, WithoutPromptThereIsNoPrefillRate) {
  case_.prompt_len = 0;
  outcome_.samples = {round(2, 3)};
  EXPECT_TRUE(build()["throughput"]["prefill_tok_per_s"].is_null());
}

TEST_F(RecordBuilderTest, OneTokenHasNoTpot) {
  case_.gen_len = 1;
  outcome_.samples = {round(2, 0)};
  const Json record = build();
  EXPECT_TRUE(record["latency"]["tpot_ms"].is_null());
  EXPECT_TRUE(record["latency"]["itl_ms"].is_null());
  EXPECT_TRUE(record["throughput"]["decode_tok_per_s"].is_null());
  EXPECT_THAT(record["samples"]["round"], ElementsAre(20));
}

TEST_F(RecordBuilderTest, HardwareCountersAreMediansAndTheSmallestShare) {
  outcome_.samples = {round(2, 3), round(2, 3), round(2, 3)};
  const double instructions[] = {300, 100, 200}, shares[] = {1, 0.5, 0.75};
  for (int i = 0; i < 3; ++i) {
    outcome_.samples[i]["counters"] = {{"instructions_per_step", instructions[i]},
                                       {"cycles_per_step", nullptr},
                                       {"running_share", shares[i]},
                                       {"missing_because", "no cycles here"}};
  }
  const Json counters = build()["counters"];
  EXPECT_EQ(counters["hardware"]["instructions_per_step"], 200);
  EXPECT_TRUE(counters["hardware"]["cycles_per_step"].is_null());
  EXPECT_EQ(counters["hardware"]["running_share"], 0.5);
  EXPECT_EQ(counters["hardware"]["missing_because"], "no cycles here");
  EXPECT_TRUE(counters["instructions_per_step"].is_null());
}

TEST_F(RecordBuilderTest, ACountedCaseHasInstructionsAndNoTimes) {
  case_.count = Counting::callgrind;
  outcome_.samples = {round(2, 3)};
  outcome_.samples[0]["ceiling"] = {{"read_gb_per_s", 10.0}};
  outcome_.samples[0]["probes"]["run_delay_ms"] = 1e6;
  outcome_.totals = {{"memory", {{"kv_live_bytes", 8000}, {"peak_rss_bytes", 1 << 30}}}};
  outcome_.instructions = 30;
  const Json record = build();
  EXPECT_EQ(record["counters"]["instructions_per_step"], 10);
  for (const char* timed : {"latency", "throughput", "profile", "probes", "samples"}) {
    for (const auto& [key, value] : record[timed].items()) {
      EXPECT_TRUE(value.is_null()) << timed << "." << key;
    }
  }
  EXPECT_TRUE(record["work"]["attend_gb_per_s"].is_null());
  EXPECT_TRUE(record["work"]["read_ceiling_gb_per_s"].is_null());
  EXPECT_TRUE(record["memory"]["peak_rss_bytes"].is_null()) << "valgrind's is in it";
  EXPECT_EQ(record["memory"]["kv_live_bytes"], 8000);
  EXPECT_THAT(record["env"]["unstable"], Not(Contains("threads had to wait for a core")));
}

TEST_F(RecordBuilderTest, KeptGapsAreBounded) {
  case_.gen_len = 10001;
  case_.max_seq_len = 16384;
  outcome_.samples = {round(2, 10000)};
  const Json record = build();
  EXPECT_EQ(record["samples"]["itl_stride"], 3);
  EXPECT_EQ(record["samples"]["itl_ms"].size(), 3334u);
}

TEST_F(RecordBuilderTest, DerivedMemoryFigures) {
  // 7 positions of 4 layers × 2 KV heads × 64 channels, K and V: 7168 numbers.
  outcome_.totals = {{"reply", "totals"},
                     {"memory",
                      {{"kv_live_bytes", 8000},
                       {"kv_reserved_bytes", 10000},
                       {"kv_payload_bytes", 7168},
                       {"kv_scale_bytes", 448},
                       {"kv_table_bytes", 400},
                       {"huge_page_bytes", 4096},
                       {"kv_saturated", 3}}},
                     {"work", {{"positions_computed", 77}}}};
  const Json record = build();
  EXPECT_DOUBLE_EQ(record["memory"]["kv_fragmentation"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(record["memory"]["kv_bytes_per_token"].get<double>(), 1200);
  EXPECT_DOUBLE_EQ(record["memory"]["kv_bits_per_element"].get<double>(), 8.5);
  EXPECT_EQ(record["memory"]["huge_page_bytes"], 4096);
  EXPECT_EQ(record["work"]["positions_computed"], 77);
}

TEST_F(RecordBuilderTest, NothingReservedHasNoFragmentation) {
  outcome_.totals = {{"reply", "totals"},
                     {"memory",
                      {{"kv_live_bytes", 0},
                       {"kv_reserved_bytes", 0},
                       {"kv_payload_bytes", 0},
                       {"kv_scale_bytes", 0},
                       {"kv_table_bytes", 0}}}};
  const Json record = build();
  EXPECT_TRUE(record["memory"]["kv_fragmentation"].is_null());
  EXPECT_TRUE(record["memory"]["kv_bits_per_element"].is_null());
}

TEST_F(RecordBuilderTest, RecomputeHoldsNothingAndReadsNothingStored) {
  case_ = small_case("recompute");
  outcome_.samples = {round(2, 3)};
  outcome_.totals = {{"reply", "totals"},
                     {"memory", {{"kv_live_bytes", 0}, {"kv_reserved_bytes", 10000}}}};
  const Json record = build();
  EXPECT_TRUE(record["memory"]["kv_fragmentation"].is_null());
  EXPECT_TRUE(record["work"]["attend_gb_per_s"].is_null());
  case_ = small_case("contiguous/f32");
  EXPECT_TRUE(build()["work"]["attend_gb_per_s"].is_number());
  EXPECT_EQ(build()["memory"]["kv_fragmentation"], 1);
}

// A round whose three steps spent `attend_ms` each in the attention.
Json round_with_ceiling(double attend_ms, const char* ceiling, double rate) {
  Json samples = round(2, 3);
  samples["attend_ms"] = std::vector<double>(3, attend_ms);
  samples["ceiling"] = {{ceiling, rate}};
  return samples;
}

TEST_F(RecordBuilderTest, AFractionIsOfItsOwnRoundsCeiling) {
  // Mean rows seen by the three decode steps: 6, of 4,096 bytes: 24,576 bytes a step.
  const auto add = [&](double gb_per_s, double ceiling) {
    outcome_.samples.push_back(round_with_ceiling(24576e-6 / gb_per_s, "read_gb_per_s", ceiling));
  };
  add(10, 20);  // 0.5
  add(24, 30);  // 0.8
  add(6, 10);   // 0.6
  Json work = build()["work"];
  EXPECT_EQ(work["kv_bytes_read_per_step"], 24576);
  EXPECT_DOUBLE_EQ(work["read_ceiling_gb_per_s"].get<double>(), 20);
  EXPECT_NEAR(work["bandwidth_fraction"].get<double>(), 0.6, 1e-12);
  EXPECT_TRUE(work["bandwidth_fraction_ci95"].is_null()) << "three rounds";
  EXPECT_NEAR(work["attend_gb_per_s"].get<double>(), 3 / (1 / 10.0 + 1 / 24.0 + 1 / 6.0), 1e-9);

  add(7, 10);   // 0.7
  add(9, 10);   // 0.9
  add(10, 25);  // 0.4
  work = build()["work"];
  EXPECT_NEAR(work["bandwidth_fraction"].get<double>(), 0.65, 1e-12);
  // Of six values the interval of the median reaches from the smallest to the largest.
  EXPECT_NEAR(work["bandwidth_fraction_ci95"][0].get<double>(), 0.4, 1e-12);
  EXPECT_NEAR(work["bandwidth_fraction_ci95"][1].get<double>(), 0.9, 1e-12);
  EXPECT_TRUE(work["page_read_ceiling_gb_per_s"].is_null());
  EXPECT_TRUE(work["page_bandwidth_fraction"].is_null());
  EXPECT_TRUE(work["flop_fraction"].is_null());
}

TEST_F(RecordBuilderTest, ShuffledPagesHaveACeilingOfTheirOwn) {
  outcome_.samples = {round_with_ceiling(24576e-6 / 10, "read_gb_per_s", 40)};
  outcome_.samples[0]["ceiling"]["page_read_gb_per_s"] = 20;
  const Json work = build()["work"];
  EXPECT_NEAR(work["bandwidth_fraction"].get<double>(), 0.25, 1e-12);
  EXPECT_EQ(work["page_read_ceiling_gb_per_s"], 20);
  EXPECT_NEAR(work["page_bandwidth_fraction"].get<double>(), 0.5, 1e-12);
}

TEST_F(RecordBuilderTest, RecomputeIsHeldAgainstArithmetic) {
  case_ = small_case("recompute");
  // Steps of 5, 6 and 7 rows: 4 FLOPs for each of 512 channels and row seen, all rows in three
  // layers and the last one in the fourth.
  const double flops = 4.0 * 512 * (3 * (15 + 21 + 28) + (5 + 6 + 7)) / 3;
  outcome_.samples = {round_with_ceiling(1e-6 * flops / 50, "fma_gflop_per_s", 200),
                      round_with_ceiling(1e-6 * flops / 30, "fma_gflop_per_s", 100)};
  const Json work = build()["work"];
  EXPECT_EQ(work["fma_gflop_per_s"], 150);
  EXPECT_NEAR(work["flop_fraction"].get<double>(), (0.25 + 0.3) / 2, 1e-12);
  EXPECT_TRUE(work["flop_fraction_ci95"].is_null());
  EXPECT_TRUE(work["read_ceiling_gb_per_s"].is_null());
  EXPECT_TRUE(work["bandwidth_fraction"].is_null());
}

TEST_F(RecordBuilderTest, WithoutACeilingOrATimeThereIsNoFraction) {
  outcome_.samples = {round(2, 3)};
  EXPECT_TRUE(build()["work"]["read_ceiling_gb_per_s"].is_null());
  EXPECT_TRUE(build()["work"]["bandwidth_fraction"].is_null());
  outcome_.samples = {round_with_ceiling(0, "read_gb_per_s", 40)};
  EXPECT_EQ(build()["work"]["read_ceiling_gb_per_s"], 40);
  EXPECT_TRUE(build()["work"]["bandwidth_fraction"].is_null());
  outcome_.samples = {round_with_ceiling(1, "read_gb_per_s", 40)};
  outcome_.void_timing = true;
  EXPECT_TRUE(build()["work"]["read_ceiling_gb_per_s"].is_null());
}

TEST_F(RecordBuilderTest, TheMachineIsThatOfTheRunAndTheStartThatOfTheCase) {
  machine_.cores = 2;
  machine_.load = 1.5;
  outcome_.started = "2026-01-31T12:34:56Z";
  const Json record = build();
  EXPECT_EQ(record["env"]["load"], 1.5);
  EXPECT_EQ(record["env"]["started"], "2026-01-31T12:34:56Z");
  EXPECT_THAT(record["env"]["unstable"].get<std::vector<std::string>>(),
              ElementsAre("load 1.5 on 2 cores before the run"));
}

TEST_F(RecordBuilderTest, WhatTheRoundsSawIsSaidBesideTheMachinesState) {
  machine_.cores = 2;
  machine_.load = 1.5;
  outcome_.unstable = {"the anchor moved"};
  outcome_.samples = {round(2, 3), round(2, 3)};
  outcome_.samples[1]["probes"]["run_delay_ms"] = 2.0;  // with the other's 0.5, of 52
  EXPECT_THAT(build()["env"]["unstable"].get<std::vector<std::string>>(),
              ElementsAre("the anchor moved", "threads had to wait for a core",
                          "load 1.5 on 2 cores before the run"));
  outcome_.samples[1]["probes"].erase("run_delay_ms");  // a worker that leaves it out
  EXPECT_THAT(build()["env"]["unstable"].get<std::vector<std::string>>(),
              Not(Contains("threads had to wait for a core")));
  EXPECT_TRUE(build()["probes"]["run_delay_ms"].is_null());
}

TEST_F(RecordBuilderTest, OutlierRoundsAreMarkedAndCount) {
  for (const double tpot_ms : {2.0, 2.1, 9.0, 2.0, 1.9, 2.1, 2.0}) {
    outcome_.samples.push_back(round(tpot_ms, 3));
  }
  const Json record = build();
  EXPECT_THAT(record["samples"]["outlier_rounds"], ElementsAre(2));
  EXPECT_EQ(record["latency"]["tpot_ms"]["outliers"], 1);
  EXPECT_EQ(record["latency"]["tpot_ms"]["n"], 7);
  EXPECT_EQ(record["latency"]["tpot_ms"]["max"], 9);
}

TEST(MissedGates, EveryFigureAndWhatWasNotMeasured) {
  LossGate gate;
  const Json loss = {{"attend_rel_rms", 0.1}, {"kld_mean", 0.01}, {"top1_agreement", 0.9}};
  EXPECT_THAT(missed_gates(gate, loss), IsEmpty());
  gate.attend_rel_rms_max = 0.1;
  gate.kld_mean_max = 0.02;
  gate.top1_min = 0.9;
  EXPECT_THAT(missed_gates(gate, loss), IsEmpty());
  gate.top1_min = 0.95;
  EXPECT_THAT(missed_gates(gate, loss),
              ElementsAre("top1_agreement 0.9 misses its gate of ≥ 0.95"));
  EXPECT_EQ(missed_gates(gate, Json()).size(), 3u);
}

}  // namespace
}  // namespace kvmark
