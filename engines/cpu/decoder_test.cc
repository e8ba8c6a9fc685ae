// The decoder over the CPU backend: against an outside implementation's logits, against the fp64
// reference, and against itself however a sequence is cut and batched.
#include "engines/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engines/catalog/engine_spec.h"
#include "engines/cpu/cpu_backend.h"
#include "engines/cpu/cpu_engine.h"
#include "engines/model/gguf.h"
#include "engines/model/plain_engine_testing.h"
#include "engines/model/reference_decoder_testing.h"

namespace kvmark {
namespace {

using Tokens = std::vector<int32_t>;
using Logits = std::vector<float>;  // (rows, vocab)

constexpr int kMaxRows = 64;

ThreadPool& pool() {
  static ThreadPool two(2);
  return two;
}

// A model in memory with a decoder over it.
struct Model {
  Model(const ModelConfig& c, uint64_t seed, WeightType type = WeightType::f32, bool repeat = false)
      : config(c), weights(seeded_weights(c, seed, type, *backend)), repeat_kv(repeat) {}
  Model(const GgufFile& file, WeightType type)
      : config(config_from_gguf(file)), weights(gguf_weights(file, config, type, *backend)) {}

  KvSpec spec(int sequences = 1) const {
    return kv_spec(config, sequences, 64, kMaxRows, repeat_kv);
  }

  std::unique_ptr<Backend> backend = make_cpu_backend(pool());
  ModelConfig config;
  Weights weights;
  bool repeat_kv = false;
  Decoder decoder{config, weights, *backend, kMaxRows, repeat_kv};
};

Logits copy_of(Tensor t) { return Logits(t.data, t.data + t.size()); }

// Feeds `tokens` in steps of the given sizes to a new sequence; logits of every row. An engine
// without a cache is fed the older rows again in every step.
Logits feed(Model& model, KvEngine& engine, const Tokens& tokens, const std::vector<int>& steps) {
  const SeqId seq = engine.open();
  Logits all;
  for (const int rows : steps) {
    const int first = engine.next(seq), older = engine.seen(seq) - first;
    const Piece piece{seq, first, older + rows};
    const Tensor logits = model.decoder.forward(
        engine, {&piece, 1}, std::span(tokens).subspan(first, piece.rows), Outputs::all);
    const Logits fresh = copy_of(logits.slice(older, rows));
    all.insert(all.end(), fresh.begin(), fresh.end());
  }
  return all;
}
Logits feed(Model& model, const Tokens& tokens, const std::vector<int>& steps) {
  PlainEngine engine(model.spec());
  return feed(model, engine, tokens, steps);
}

std::vector<int> steps_of(int total, int step) {
  std::vector<int> steps(total / step, step);
  if (total % step) steps.push_back(total % step);
  return steps;
}

template <typename A, typename B>
double max_difference(const A& a, const B& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double(a[i]) - double(b[i]));
    most = std::isnan(difference) ? HUGE_VAL : std::max(most, difference);
  }
  return most;
}

Tokens some_tokens(int n, int vocab, int salt = 0) {
  Tokens tokens(n);
  for (int i = 0; i < n; ++i) tokens[i] = (i * 37 + i * i * 11 + salt * 101) % vocab;
  return tokens;
}

ModelConfig tiny(Family family, int heads, int kv_heads, int head_dim) {
  ModelConfig c;
  c.name = "tiny";
  c.family = family;
  c.layers = 3;
  c.d_model = 40;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = head_dim;
  c.ffn = 52;
  c.vocab = 70;
  c.context = 48;
  c.rope = {10000, head_dim, RopePairing::adjacent};
  return c;
}

std::vector<ModelConfig> shapes() {
  std::vector<ModelConfig> all{tiny(Family::llama, 4, 2, 10), tiny(Family::llama, 9, 3, 4),
                               tiny(Family::llama, 6, 1, 12), tiny(Family::gpt2, 5, 5, 8)};
  all.push_back(tiny(Family::llama, 8, 2, 6));  // Qwen2's ways, and a head that is rotated in part
  all.back().rope = {1e6, 4, RopePairing::halves};
  all.back().qkv_bias = true;
  all.back().tied_embeddings = true;
  return all;
}

// ---- The outside implementation.

struct Golden {
  const char* name;
  double tolerance;  // largest difference of a logit
};

class GoldenLogits : public testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    const std::string base =
        std::string(KVMARK_SOURCE_DIR) + "/tests/data/golden/" + GetParam().name;
    std::ifstream json(base + ".json");
    tokens = nlohmann::json::parse(json)["tokens"].get<Tokens>();
    file = std::make_unique<GgufFile>(base + ".gguf");
    expected.resize(tokens.size() * config_from_gguf(*file).vocab);
    std::ifstream in(base + ".logits.f32", std::ios::binary);
    in.read(reinterpret_cast<char*>(expected.data()), expected.size() * sizeof(float));
    ASSERT_EQ(in.gcount(), static_cast<std::streamsize>(expected.size() * sizeof(float)));
  }
  int n() const { return static_cast<int>(tokens.size()); }

  Tokens tokens;
  std::unique_ptr<GgufFile> file;
  Logits expected;
};

TEST_P(GoldenLogits, AreReproducedHoweverTheTokensAreFed) {
  Model model(*file, WeightType::f32);
  for (const int step : {1, 7, n()}) {
    const double difference = max_difference(feed(model, tokens, steps_of(n(), step)), expected);
    RecordProperty("max_difference_step_" + std::to_string(step), std::to_string(difference));
    EXPECT_LE(difference, GetParam().tolerance) << "in steps of " << step;
  }
}

// The whole program's path: the real decoder over each real layout, all of them with f32 rows.
TEST_P(GoldenLogits, AreReproducedByEveryLayout) {
  Model model(*file, WeightType::f32);
  for (const char* name : {"recompute", "contiguous", "paged:16"}) {
    for (const int step : {1, 7, n()}) {
      const auto engine = make_cpu_engine(parse_engine(name), model.spec(), pool());
      const Logits logits = feed(model, *engine, tokens, steps_of(n(), step));
      EXPECT_LE(max_difference(logits, expected), GetParam().tolerance)
          << name << " in steps of " << step;
    }
  }
}

TEST_P(GoldenLogits, AreReproducedByTheReferenceDecoder) {
  const Model model(*file, WeightType::f32);
  const std::vector<double> logits = ReferenceDecoder(model.config, model.weights).logits(tokens);
  EXPECT_LE(max_difference(logits, expected), GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLogits,
                         testing::Values(Golden{"llama-4x2", 1e-4}, Golden{"llama-4x2-f16", 1e-4},
                                         Golden{"llama-6x2-hd20", 1e-4}, Golden{"qwen2-8x2", 1e-4},
                                         Golden{"gpt2-4", 1e-3}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// ---- The reference, on shapes that hide nothing.

class Shapes : public testing::TestWithParam<int> {
 protected:
  ModelConfig config = shapes()[GetParam()];
  Tokens tokens = some_tokens(23, config.vocab);
  int vocab = config.vocab;

  Logits row(const Logits& logits, int r) const {
    return Logits(logits.begin() + r * vocab, logits.begin() + (r + 1) * vocab);
  }
};

TEST_P(Shapes, EqualTheReference) {
  Model model(config, 5);
  const std::vector<double> expected = ReferenceDecoder(config, model.weights).logits(tokens);
  for (const int step : {1, 2, 5, 23}) {
    EXPECT_LE(max_difference(feed(model, tokens, steps_of(23, step)), expected), 1e-4)
        << "in steps of " << step;
  }
}

TEST_P(Shapes, HalfPrecisionWeightsStayNear) {
  Model exact(config, 5), f16(config, 5, WeightType::f16), bf16(config, 5, WeightType::bf16);
  const Logits expected = feed(exact, tokens, {23});
  for (const int step : {1, 23}) {
    EXPECT_LE(max_difference(feed(f16, tokens, steps_of(23, step)), expected), 0.05);
    EXPECT_LE(max_difference(feed(bf16, tokens, steps_of(23, step)), expected), 0.4);
  }
}

TEST_P(Shapes, APrefillCutAnywhereIsTheSame) {
  Model model(config, 6);
  const Tokens sixteen(tokens.begin(), tokens.begin() + 16);
  const Logits whole = feed(model, sixteen, {16});
  for (int cut = 1; cut < 16; ++cut) {
    EXPECT_LE(max_difference(feed(model, sixteen, {cut, 16 - cut}), whole), 1e-4) << cut;
  }
}

TEST_P(Shapes, ABatchOfUnequalLengthsEqualsTheRowsAlone) {
  Model model(config, 7);
  for (const std::vector<int>& lengths : {std::vector{1, 3, 17, 40}, std::vector{1, 16, 33}}) {
    PlainEngine engine(model.spec(static_cast<int>(lengths.size())));
    std::vector<Piece> pieces;
    Tokens packed;
    std::vector<Tokens> sequences;
    for (const int length : lengths) {
      sequences.push_back(some_tokens(length, vocab, length));
      pieces.push_back({engine.open(), 0, length});
      packed.insert(packed.end(), sequences.back().begin(), sequences.back().end());
    }
    const Logits last = copy_of(model.decoder.forward(engine, pieces, packed, Outputs::last));
    ASSERT_EQ(last.size(), lengths.size() * vocab);
    Tokens next;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const Logits alone = feed(model, sequences[i], {lengths[i]});
      EXPECT_LE(max_difference(row(last, i), row(alone, lengths[i] - 1)), 1e-4);
      pieces[i] = {pieces[i].seq, lengths[i], 1};
      next.push_back(static_cast<int32_t>(i));
      sequences[i].push_back(next.back());
    }
    const Logits decoded = copy_of(model.decoder.forward(engine, pieces, next, Outputs::all));
    for (size_t i = 0; i < lengths.size(); ++i) {
      const Logits alone = feed(model, sequences[i], {lengths[i] + 1});
      EXPECT_LE(max_difference(row(decoded, i), row(alone, lengths[i])), 1e-4);
    }
  }
}

TEST_P(Shapes, LastIsTheLastRowOfAll) {
  Model model(config, 8);
  const Logits all = feed(model, tokens, {23});
  PlainEngine engine(model.spec());
  const Piece piece{engine.open(), 0, 23};
  const Logits last = copy_of(model.decoder.forward(engine, {&piece, 1}, tokens, Outputs::last));
  EXPECT_LE(max_difference(last, row(all, 22)), 1e-4);
}

TEST_P(Shapes, NoneFillsTheCacheForWhatFollows) {
  Model model(config, 8);
  const Logits all = feed(model, tokens, {23});
  PlainEngine engine(model.spec());
  Piece piece{engine.open(), 0, 20};
  const std::span<const int32_t> fed(tokens);
  const Tensor nothing = model.decoder.forward(engine, {&piece, 1}, fed.first(20), Outputs::none);
  EXPECT_EQ(nothing.size(), 0);
  EXPECT_EQ(engine.seen(piece.seq), 20);
  for (int position = 20; position < 23; ++position) {
    piece = {piece.seq, position, 1};
    const Logits one =
        copy_of(model.decoder.forward(engine, {&piece, 1}, fed.subspan(position, 1), Outputs::all));
    EXPECT_LE(max_difference(one, row(all, position)), 1e-4) << position;
  }
}

TEST_P(Shapes, RepeatedHeadsChangeNothing) {
  Model shared(config, 9), repeated(config, 9, WeightType::f32, true);
  EXPECT_EQ(repeated.spec().kv_heads, config.heads);
  EXPECT_LE(
      max_difference(feed(shared, tokens, {20, 1, 1, 1}), feed(repeated, tokens, {20, 1, 1, 1})),
      1e-5);
}

TEST_P(Shapes, AnExceptionInMidStepRollsBack) {
  struct Interrupt : StepObserver {
    void enter_layer(int layer) override {
      if (layer == 1) throw RuntimeError("interrupted");
    }
  } interrupt;
  Model model(config, 10);
  PlainEngine engine(model.spec());
  const SeqId seq = engine.open();
  const std::span<const int32_t> fed(tokens);
  Piece piece{seq, 0, 10};
  model.decoder.forward(engine, {&piece, 1}, fed.first(10), Outputs::none);
  piece = {seq, 10, 13};
  EXPECT_THROW(
      model.decoder.forward(engine, {&piece, 1}, fed.subspan(10), Outputs::all, &interrupt),
      RuntimeError);
  EXPECT_EQ(engine.seen(seq), 10);
  const Logits after =
      copy_of(model.decoder.forward(engine, {&piece, 1}, fed.subspan(10), Outputs::last));
  EXPECT_LE(max_difference(after, row(feed(model, tokens, {23}), 22)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, Shapes, testing::Range(0, 5));

// ---- Limits and phases.

std::string error_of(Model& model, const Tokens& tokens) {
  PlainEngine engine(model.spec());
  const Piece piece{engine.open(), 0, static_cast<int>(tokens.size())};
  try {
    model.decoder.forward(engine, {&piece, 1}, tokens, Outputs::last);
  } catch (const RuntimeError& error) {
    EXPECT_EQ(engine.seen(piece.seq), 0);
    return error.what();
  }
  return "";
}

TEST(DecoderLimits, LearnedPositionsEndAtTheContext) {
  Model model(tiny(Family::gpt2, 5, 5, 8), 1);
  EXPECT_EQ(error_of(model, some_tokens(48, 70)), "");
  EXPECT_THAT(error_of(model, some_tokens(49, 70)),
              testing::HasSubstr("position 48 is past the context of tiny"));
}

TEST(DecoderLimits, RotaryPositionsGoOnPastTheContext) {
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  const Tokens tokens = some_tokens(60, 70);
  const std::vector<double> expected = ReferenceDecoder(model.config, model.weights).logits(tokens);
  EXPECT_LE(max_difference(feed(model, tokens, {60}), expected), 1e-4);
}

TEST(DecoderLimits, TokensOutsideTheVocabularyAreRefused) {
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  EXPECT_THAT(error_of(model, {1, 70}), testing::HasSubstr("token 70 is not in the vocabulary"));
  EXPECT_THAT(error_of(model, {-1}), testing::HasSubstr("token -1 is not in the vocabulary"));
}

TEST(DecoderLimits, ARefusalOfTheEngineSaysWhy) {
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  KvSpec spec = model.spec();
  spec.max_len = 4;
  PlainEngine engine(spec);
  const Piece piece{engine.open(), 0, 5};
  EXPECT_THROW(model.decoder.forward(engine, {&piece, 1}, some_tokens(5, 70), Outputs::all),
               RuntimeError);
}

TEST(DecoderLogits, ShareTheMemoryOfTheMostRowsSoFar) {
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  PlainEngine engine(model.spec());
  const SeqId seq = engine.open();
  const Tokens tokens = some_tokens(26, 70);
  const auto logits_of = [&](int rows) {
    const Piece piece{seq, engine.next(seq), rows};
    return model.decoder.forward(engine, {&piece, 1}, std::span(tokens).subspan(piece.first, rows),
                                 Outputs::all);
  };
  const Tensor most = logits_of(20);
  EXPECT_EQ(logits_of(1).data, most.data);
  EXPECT_EQ(logits_of(5).data, most.data);
}

TEST(DecoderLimits, AnEngineOfAnotherShapeIsABug) {
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  PlainEngine engine(kv_spec(tiny(Family::llama, 4, 4, 10), 1, 64, kMaxRows, false));
  const Piece piece{engine.open(), 0, 1};
  EXPECT_THROW(model.decoder.forward(engine, {&piece, 1}, Tokens{1}, Outputs::all), LogicError);
}

TEST(DecoderPhases, StandInTheOrderOfTheForward) {
  struct Recorder : StepObserver {
    void enter(Phase phase) override { phases.push_back(phase); }
    void enter_layer(int layer) override { layers.push_back(layer); }
    std::vector<Phase> phases;
    std::vector<int> layers;
  } recorder;
  Model model(tiny(Family::llama, 4, 2, 10), 1);
  PlainEngine engine(model.spec());
  const Piece piece{engine.open(), 0, 2};
  model.decoder.forward(engine, {&piece, 1}, Tokens{1, 2}, Outputs::last, &recorder);
  std::vector<Phase> expected{Phase::other};
  for (int i = 0; i < 3; ++i) {
    for (const Phase phase : {Phase::qkv, Phase::append, Phase::attend, Phase::out, Phase::ffn}) {
      expected.push_back(phase);
    }
  }
  expected.insert(expected.end(), {Phase::lm_head, Phase::other});
  EXPECT_EQ(recorder.phases, expected);
  EXPECT_EQ(recorder.layers, (std::vector{0, 1, 2}));
}

// ---- The seeded weights.

// Standard deviation over the keys of q·k/√d, mean over queries and heads, per layer.
TEST(SeededWeights, ScoresSpreadLikeARealModels) {
  ModelConfig config = model_preset("seed-gqa");
  Model model(config, 1);
  struct Scores : StepObserver {
    explicit Scores(const PlainEngine& e) : engine(e) {}
    void attended(int layer, Outputs, std::span<const Piece>, Tensor q, Tensor, Tensor,
                  Tensor) override {
      const KvSpec& spec = engine.spec();
      const int n = q.rows, dim = spec.k_dim;
      std::vector<float> k(size_t(n) * spec.kv_heads * dim), v(k.size());
      engine.read(0, layer, 0, n, {k.data(), n, spec.kv_heads * dim},
                  {v.data(), n, spec.kv_heads * dim});
      double deviations = 0;
      for (int head = 0; head < spec.heads; ++head) {
        // The last row, turned to position 0 relative to itself only changes which key is near.
        const float* query = q.row(n - 1) + head * dim;
        double sum = 0, square = 0;
        for (int j = 0; j < n; ++j) {
          const float* key = &k[(size_t(j) * spec.kv_heads + head / 4) * dim];
          const double s = std::inner_product(query, query + dim, key, 0.0) / std::sqrt(dim);
          sum += s / n;
          square += s * s / n;
        }
        deviations += std::sqrt(square - sum * sum) / spec.heads;
      }
      spread.push_back(deviations);
      // Of the channels' RMS: the largest over the median.
      std::vector<double> rms(dim, 0.0);
      for (size_t i = 0; i < k.size(); ++i) rms[i % dim] += double(k[i]) * k[i];
      std::sort(rms.begin(), rms.end());
      outlier.push_back(std::sqrt(rms.back() / rms[dim / 2]));
    }
    const PlainEngine& engine;
    std::vector<double> spread, outlier;
  };
  PlainEngine engine(model.spec());
  Scores scores(engine);
  const Piece piece{engine.open(), 0, 64};
  model.decoder.forward(engine, {&piece, 1}, some_tokens(64, config.vocab), Outputs::none, &scores);
  ASSERT_EQ(scores.spread.size(), 4u);
  for (int layer = 0; layer < 4; ++layer) {
    RecordProperty("spread_" + std::to_string(layer), std::to_string(scores.spread[layer]));
    EXPECT_GT(scores.spread[layer], 1.0) << "layer " << layer;
    EXPECT_LT(scores.spread[layer], 4.0) << "layer " << layer;
    EXPECT_GT(scores.outlier[layer], 2.4) << "layer " << layer;
    EXPECT_LT(scores.outlier[layer], 25.0) << "layer " << layer;
  }
}

uint64_t digest(const Weight& w) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  const auto* bytes = static_cast<const unsigned char*>(w.data);
  for (int64_t i = 0; i < w.bytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

// Another machine, compiler or thread count must make the very same bits.
TEST(SeededWeights, AreTheSameBitsEverywhere) {
  const ModelConfig config = model_preset("seed-gqa");
  const Model model(config, 1), half(config, 1, WeightType::f16);
  const LayerWeights& layer = model.weights.layers[2];
  EXPECT_EQ(digest(model.weights.embedding), 0xc23eedb5827b2dbull);
  EXPECT_EQ(digest(layer.wq), 0x23f3e2f4c13fdda4ull);
  EXPECT_EQ(digest(layer.wk), 0x02d97a23c9ef8a98ull);
  EXPECT_EQ(digest(layer.w_down), 0xb29fc2f466765d32ull);
  EXPECT_EQ(digest(layer.ffn_norm), 0x2e8c680717ed365bull);
  EXPECT_EQ(digest(half.weights.layers[0].wk), 0x5161a48e79d8bb75ull);
}

TEST(SeededWeights, DependOnTheSeedAndTheTensor) {
  const ModelConfig config = tiny(Family::gpt2, 5, 5, 8);
  const Model one(config, 1), two(config, 2);
  const LayerWeights& layer = one.weights.layers[0];
  EXPECT_NE(digest(one.weights.embedding), digest(two.weights.embedding));
  EXPECT_NE(digest(layer.wv), digest(one.weights.layers[1].wv));
  EXPECT_NE(digest(layer.wo), digest(layer.wv));
  EXPECT_EQ(one.weights.lm_head.data == one.weights.embedding.data, config.tied_embeddings);
}

TEST(SeededWeights, HoldAsManyParametersAsTheFormulaSays) {
  for (const ModelConfig& config : shapes()) {
    const Model model(config, 1);
    EXPECT_EQ(model.backend->weight_bytes_held(), 4 * parameter_count(config));
  }
}

}  // namespace
}  // namespace kvmark
