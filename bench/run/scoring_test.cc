#include "bench/run/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "bench/run/verify.h"
#include "bench/run/workload_testing.h"
#include "engines/model/gguf_testing.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

TEST(ScorePosition, MatchesAHandCalculation) {
  // r = (1/2, 1/4, 1/4), p = (1/4, 1/2, 1/4).
  const float reference[] = {std::log(2.0f), 0, 0}, logits[] = {0, std::log(2.0f), 0};
  const PositionScore score = score_position(logits, reference, 3, 1);
  EXPECT_NEAR(score.kld, 0.5 * std::log(2.0) - 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(score.nll, std::log(2.0), 1e-7);
  EXPECT_NEAR(score.nll_reference, std::log(4.0), 1e-7);
  EXPECT_FALSE(score.same_top1);
}

TEST(ScorePosition, EqualLogitsHaveNoDivergenceHoweverLarge) {
  const float logits[] = {1000, -1000, 999, 3};
  const PositionScore score = score_position(logits, logits, 4, 2);
  EXPECT_EQ(score.kld, 0);
  EXPECT_TRUE(score.same_top1);
  EXPECT_TRUE(std::isfinite(score.nll));
}

TEST(ScorePosition, AddingAConstantChangesNothing) {
  const float a[] = {0.5f, -2, 3, 1}, b[] = {7.5f, 5, 10, 8};
  EXPECT_NEAR(score_position(a, b, 4, 0).kld, 0, 1e-9);
  EXPECT_NEAR(score_position(b, a, 4, 0).nll, score_position(a, a, 4, 0).nll, 1e-9);
}

// A file with a model and its vocabulary (a letter a token), and a text.
class ScoringTest : public testing::Test {
 protected:
  static constexpr int kPositions = 60, kVocab = 26, kModel = 16, kHead = 8, kFfn = 24;

  static std::string letters(int count) {
    std::mt19937 random(3);
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>('a' + random() % kVocab);
    return text;
  }

  static std::string model_bytes() {
    GgufWriter file;
    file.text("general.architecture", "llama").text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "default").strings("tokenizer.ggml.merges", {});
    std::vector<std::string> tokens;
    for (int i = 0; i < kVocab; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
    file.strings("tokenizer.ggml.tokens", tokens);
    file.integer("llama.block_count", 1).integer("llama.embedding_length", kModel);
    file.integer("llama.attention.head_count", 2).integer("llama.attention.head_count_kv", 1);
    file.integer("llama.attention.key_length", kHead);
    file.integer("llama.attention.value_length", kHead);
    file.integer("llama.feed_forward_length", kFfn).integer("llama.context_length", 512);
    file.number("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    file.number("llama.rope.freq_base", 1e4f).integer("llama.rope.dimension_count", kHead);

    std::mt19937 random(7);
    const auto matrix = [&](const std::string& name, uint64_t cols, uint64_t rows, float scale) {
      std::vector<float> values(cols * rows);
      for (float& x : values) x = scale * (static_cast<float>(random() % 2001) / 1000 - 1);
      file.tensor_f32(name, {cols, rows}, values);
    };
    const auto ones = [&](const std::string& name) {
      file.tensor_f32(name, {kModel}, std::vector<float>(kModel, 1.0f));
    };
    matrix("token_embd.weight", kModel, kVocab, 1);
    ones("output_norm.weight");
    ones("blk.0.attn_norm.weight");
    ones("blk.0.ffn_norm.weight");
    matrix("blk.0.attn_q.weight", kModel, 2 * kHead, 0.8f);
    matrix("blk.0.attn_k.weight", kModel, kHead, 0.8f);
    matrix("blk.0.attn_v.weight", kModel, kHead, 0.8f);
    matrix("blk.0.attn_output.weight", 2 * kHead, kModel, 0.5f);
    matrix("blk.0.ffn_gate.weight", kModel, kFfn, 0.3f);
    matrix("blk.0.ffn_up.weight", kModel, kFfn, 0.3f);
    matrix("blk.0.ffn_down.weight", kFfn, kModel, 0.3f);
    return file.bytes();
  }

  Case make_case(const char* engine, int chunk) const {
    Case c = tiny_case(engine, 8, 4);
    c.source = {.kind = ModelSource::Kind::file, .name = model_.path()};
    c.model = config_from_gguf(GgufFile(model_.path()));
    c.max_seq_len = 64;
    c.score = {.text = text_.path(), .positions = kPositions, .chunk = chunk};
    return c;
  }

  nlohmann::ordered_json loss(const char* engine, int chunk) const {
    Workload full(make_case("contiguous", 16), 0);
    const Reference reference = make_reference(full);
    Workload workload(make_case(engine, chunk), 0);
    return verify(workload, &reference)["loss"];
  }
  double kld(const char* engine, int chunk) const { return loss(engine, chunk)["kld_mean"]; }

  const TempFile model_{model_bytes()};
  const TempFile text_{letters(kPositions + 1)};
};

TEST_F(ScoringTest, TheReferenceHasNoDivergenceFromItself) {
  const auto same = loss("contiguous", 16);
  EXPECT_EQ(same["kld_mean"], 0);
  EXPECT_EQ(same["top1_agreement"], 1);
  EXPECT_EQ(same["nll"], same["nll_reference"]);
  EXPECT_EQ(same["positions"], kPositions);
  EXPECT_GT(same["nll"].get<double>(), 1);
  EXPECT_EQ(kld("paged:32", 16), 0);
  EXPECT_LT(kld("recompute", 16), 1e-9);
}

TEST_F(ScoringTest, ChunksEqualStepByStep) {
  for (const char* engine : {"compressed", "paged:16/int4:g32", "fp16"}) {
    const double stepwise = kld(engine, 1);
    EXPECT_GT(stepwise, 0) << engine;
    // Matrix products of many rows round otherwise than those of few.
    EXPECT_NEAR(kld(engine, 7), stepwise, 1e-3 * stepwise) << engine;
    EXPECT_NEAR(kld(engine, kPositions), stepwise, 1e-3 * stepwise) << engine;
  }
}

TEST_F(ScoringTest, CoarserFormatsLoseMore) {
  const double f16 = kld("fp16", 16), int8 = kld("compressed", 16),
               int4 = kld("contiguous/int4:g32", 16);
  EXPECT_LT(f16, int8 / 10);
  EXPECT_LT(int8, int4 / 10);
}

TEST_F(ScoringTest, LeavesNoMarkOnTheMemoryOfTheRounds) {
  Workload full(make_case("paged:16", 16), 0);
  const Reference reference = make_reference(full);
  Workload workload(make_case("paged:16", 16), 0);
  verify(workload, &reference);
  const Footprint footprint = workload.round().footprint;
  const int64_t row = 2 * kHead * 4;
  EXPECT_EQ(footprint.live_bytes, (8 + 3) * row);
  // Neither the scored text nor the short verification run: 11 positions in a block of 16.
  EXPECT_EQ(footprint.peak_bytes - footprint.table_bytes, 16 * row);
}

TEST_F(ScoringTest, ATextThatIsTooShortIsNamed) {
  Case c = make_case("contiguous", 16);
  c.score.positions = kPositions + 1;
  try {
    Workload(c, 0);
    FAIL() << "accepted";
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find(text_.path()), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("score.positions"), std::string::npos);
  }
}

}  // namespace
}  // namespace kvmark
