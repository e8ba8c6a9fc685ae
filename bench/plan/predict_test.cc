#include <gtest/gtest.h>

#include "bench/plan/case.h"

namespace kvmark {
namespace {

Case case_of(const char* engine, const char* model, int prompt_len, int gen_len) {
  Case c;
  c.engine = parse_engine(engine);
  c.model = model_preset(model);
  c.source.name = model;
  c.prompt_len = prompt_len;
  c.gen_len = gen_len;
  c.max_seq_len = 1024;
  return c;
}

TEST(Predict, PositionsFromAnEmptyCache) {
  EXPECT_EQ(predict(case_of("recompute", "gpt2", 0, 1000), 4).positions_computed, 500500);
  EXPECT_EQ(predict(case_of("contiguous", "gpt2", 0, 1000), 4).positions_computed, 1000);
}

TEST(Predict, PositionsAfterAPrompt) {
  // 100 rows for the first token, then 101 and 102 again, or one and one.
  EXPECT_EQ(predict(case_of("recompute", "gpt2", 100, 3), 0).positions_computed, 303);
  EXPECT_EQ(predict(case_of("contiguous", "gpt2", 100, 3), 0).positions_computed, 102);
  // At attention level the context is filled once, outside of the rounds.
  Case c = case_of("contiguous", "gpt2", 100, 3);
  c.level = Level::attention;
  EXPECT_EQ(predict(c, 0).positions_computed, 2);
  c.engine = parse_engine("recompute");
  EXPECT_EQ(predict(c, 0).positions_computed, 203);
}

TEST(Predict, TheQuickstartIsSomeTwoAndAHalfTeraflop) {
  const Prediction recompute = predict(case_of("recompute", "seed-gqa", 0, 511), 0);
  const double total = recompute.flops_per_step * 510;
  EXPECT_GT(total, 2.3e12);
  EXPECT_LT(total, 3.0e12);
  const Prediction cached = predict(case_of("contiguous", "seed-gqa", 0, 511), 0);
  EXPECT_LT(cached.flops_per_step * 510, total / 150);
  EXPECT_GT(recompute.round_s, 5 * cached.round_s);
}

TEST(Predict, ACountTakesLongerAndNeedsNoCeiling) {
  Case c = case_of("contiguous", "seed-gqa", 256, 9);
  const Prediction timed = predict(c, 0);
  c.count = Counting::callgrind;
  const Prediction counted = predict(c, 0);
  EXPECT_GT(timed.ceiling_bytes, 0);
  EXPECT_EQ(counted.ceiling_bytes, 0);
  EXPECT_LT(counted.total_bytes, timed.total_bytes);
  EXPECT_GT(counted.round_s, 60 * timed.round_s);
  EXPECT_GT(counted.once_s, 60 * timed.once_s);
  EXPECT_EQ(counted.flops_per_step, timed.flops_per_step);
}

TEST(Predict, FlopsOfOneDecodeStepByHand) {
  // gpt2, position 100 (101 rows seen): 12 · (4 · 768² + 8 · 768²) parameters and the output
  // matrix, 2 FLOPs each; 4 · 768 · 101 for the attention of a layer.
  const Prediction p = predict(case_of("contiguous", "gpt2", 100, 2), 0);
  const double dense = 2.0 * (12 * 12 * 768 * 768 + 50257 * 768);
  EXPECT_DOUBLE_EQ(p.attend_flops_per_step, 12.0 * 4 * 768 * 101);
  EXPECT_DOUBLE_EQ(p.flops_per_step, dense + 12.0 * 4 * 768 * 101);
  EXPECT_EQ(p.weight_bytes_read_per_step, 4 * (12 * 12 * 768 * 768 + 50257 * 768));
}

TEST(Predict, BytesReadAreTheLiveRows) {
  // K and V of 2 heads of 64 in 4 layers: 4,096 bytes a position in f32.
  const Case f32 = case_of("contiguous", "seed-gqa", 256, 2);
  EXPECT_EQ(predict(f32, 0).kv_bytes_read_per_step, 257 * 4096);
  EXPECT_EQ(predict(case_of("paged", "seed-gqa", 256, 2), 0).kv_bytes_read_per_step, 257 * 4096);
  EXPECT_EQ(predict(case_of("fp16", "seed-gqa", 256, 2), 0).kv_bytes_read_per_step, 257 * 2048);
  EXPECT_EQ(predict(case_of("compressed", "seed-gqa", 256, 2), 0).kv_bytes_read_per_step,
            257 * 4096 * 85 / 320);
  Case batch = f32;
  batch.batch = 3;
  EXPECT_EQ(predict(batch, 0).kv_bytes_read_per_step, 3 * 257 * 4096);
}

TEST(Predict, Bytes) {
  const Prediction p = predict(case_of("contiguous", "seed-gqa", 0, 511), 0);
  EXPECT_EQ(p.kv_live_bytes, 511 * 4096);
  EXPECT_EQ(predict(case_of("recompute", "seed-gqa", 0, 511), 0).kv_live_bytes, 0);
  EXPECT_GE(p.kv_bytes, 1024 * 4096);  // reserves max_seq_len
  EXPECT_LT(p.kv_bytes, 1024 * 4096 * 11 / 10);
  EXPECT_EQ(p.weight_bytes, 4 * parameter_count(model_preset("seed-gqa")));
  EXPECT_GT(p.total_bytes, p.kv_bytes + p.weight_bytes);
  Case f16 = case_of("contiguous", "smollm2-135m", 0, 16);
  f16.source.weights = WeightType::f16;
  const int64_t parameters = parameter_count(f16.model), vectors = 61 * 576;
  EXPECT_EQ(predict(f16, 0).weight_bytes, 2 * (parameters - vectors) + 4 * vectors);
  f16.level = Level::attention;
  EXPECT_EQ(predict(f16, 0).weight_bytes, 0);
}

TEST(Predict, TheCeilingIsMeasuredOnWhatAStepReads) {
  Case c = case_of("contiguous", "seed-gqa", 256, 2);
  c.level = Level::attention;
  EXPECT_EQ(predict(c, 0).ceiling_bytes, 257 * 4096);
  EXPECT_EQ(predict(c, 0).ceiling_page_bytes, 0);
  c.level = Level::model;  // weights push the rows out of the caches
  EXPECT_EQ(predict(c, 0).ceiling_bytes, 257 * 4096 + predict(c, 0).weight_bytes_read_per_step);
  c.gen_len = 1;
  EXPECT_EQ(predict(c, 0).ceiling_bytes, 0) << "no decode step";
  EXPECT_EQ(predict(case_of("recompute", "seed-gqa", 256, 2), 0).ceiling_bytes, 0);
  c = case_of("contiguous", "llama-3-8b", 256, 2);
  EXPECT_EQ(predict(c, 0).ceiling_bytes, kMaxCeilingBytes);
}

TEST(Predict, AShuffledPoolHasACeilingOfItsPages) {
  Case c = case_of("paged:16/f16", "seed-gqa", 256, 2);
  c.level = Level::attention;
  const Prediction fresh = predict(c, 0);
  EXPECT_EQ(fresh.ceiling_page_bytes, 0);
  c.pool_order = PoolOrder::shuffled;
  const Prediction shuffled = predict(c, 0);
  EXPECT_EQ(shuffled.ceiling_page_bytes, 16 * 2 * 2 * 64 * 2);  // K and V of 2 heads of 64
  EXPECT_EQ(shuffled.total_bytes - fresh.total_bytes, shuffled.ceiling_bytes);
  c.engine = parse_engine("contiguous/f16");
  EXPECT_EQ(predict(c, 0).ceiling_page_bytes, 0);
}

TEST(Predict, ScoringHoldsTheReferencesLogitsAndThoseOfAChunk) {
  // Beside them the rows of the text are held once more, a small part of it.
  Case c = case_of("contiguous", "seed-gqa", 600, 64);
  c.model.vocab = 1 << 20;
  const double row = 4.0 * c.model.vocab;
  const auto rows_of_logits = [&](const char* engine) {
    c.engine = parse_engine(engine);
    c.score = {};
    const int64_t plain = predict(c, 0).total_bytes;
    c.score = {"text", 512, 64};
    return (predict(c, 0).total_bytes - plain) / row;
  };
  EXPECT_NEAR(rows_of_logits("contiguous"), 512 + 64 - 1, 4);
  EXPECT_NEAR(rows_of_logits("recompute"), 512 + 512 - 1, 4) << "fed at once";
}

TEST(Predict, TheAnglesOfALongContextCount) {
  Case c = case_of("paged", "seed-gqa", 64, 2);
  const int64_t near = predict(c, 0).total_bytes;
  c.max_seq_len = 1024 + 1000000;  // paged reserves nothing, but for its tables
  EXPECT_GE(predict(c, 0).total_bytes - near, int64_t{1000000} * 64 * 4);
  EXPECT_LT(predict(c, 0).total_bytes - near, int64_t{1000000} * 64 * 4 * 11 / 10);
}

TEST(Predict, SettleStepsAndScoringTakeTime) {
  Case c = case_of("contiguous", "seed-gqa", 64, 64);
  EXPECT_GT(predict(c, 16).round_s, predict(c, 0).round_s);
  const double plain = predict(c, 0).once_s;
  c.score = {"text", 512, 64};
  EXPECT_GT(predict(c, 0).once_s, plain);
}

TEST(Predict, FillingAContextIsCheap) {
  // Synthetic rows are stored without attention: linear in the depth.
  Case c = case_of("contiguous", "llama-3-8b", 4096, 2);
  c.model.layers = 2;
  c.level = Level::attention;
  c.max_seq_len = 65536;
  const double near = predict(c, 0).once_s;
  c.prompt_len = 16384;
  EXPECT_LT(predict(c, 0).once_s, 4.1 * near);
  EXPECT_LT(predict(c, 0).once_s, 5);
}

TEST(Predict, RecomputeIsVerifiedOnSomeSteps) {
  const Prediction p = predict(case_of("recompute", "gpt2", 0, 1000), 0);
  EXPECT_LT(p.once_s, p.round_s / 10);
}

TEST(KvSpecOf, HoldsTheWorkloadAndTheScoring) {
  Case c = case_of("contiguous", "seed-gqa", 100, 28);
  c.batch = 3;
  KvSpec spec = kv_spec_of(c);
  EXPECT_EQ(spec.max_seqs, 3);
  EXPECT_EQ(spec.max_len, 1024);
  EXPECT_EQ(spec.max_rows, 300);
  EXPECT_EQ(spec.kv_heads, 2);
  c.repeat_kv = true;
  c.score = {"text", 2000, 128};
  spec = kv_spec_of(c);
  EXPECT_EQ(spec.kv_heads, 8);
  EXPECT_EQ(spec.max_len, 2000);
}

TEST(MaxRows, ChunksLongPromptsButNotRecompute) {
  Case c = case_of("contiguous", "seed-gqa", 0, 64);
  EXPECT_EQ(max_rows_of(c), 1);
  c.prompt_len = 900;
  EXPECT_EQ(max_rows_of(c), 512);
  c.batch = 3;  // 170 rows of each sequence
  EXPECT_EQ(max_rows_of(c), 510);
  c.batch = 1000;
  EXPECT_EQ(max_rows_of(c), 1000);
  c.batch = 1;
  c.prompt_len = 10;
  c.score = {"text", 300, 128};
  EXPECT_EQ(max_rows_of(c), 128);

  Case r = case_of("recompute", "seed-gqa", 900, 101);
  EXPECT_EQ(max_rows_of(r), 1000);
  r.batch = 2;
  EXPECT_EQ(max_rows_of(r), 2000);
  r.prompt_len = 1, r.gen_len = 2, r.batch = 1;
  EXPECT_EQ(max_rows_of(r), kShortRows);  // short verification runs
  r.score = {"text", 300, 128};
  EXPECT_EQ(max_rows_of(r), 300);
}

}  // namespace
}  // namespace kvmark
