#include <cmath>

#include "engines/model/noise.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

// One number for each kind of tensor; part of the definition of the weights.
enum Kind : uint64_t {
  kEmbedding,
  kPositions,
  kLmHead,
  kAttnNorm,
  kAttnNormBias,
  kWq,
  kWk,
  kWv,
  kBq,
  kBk,
  kBv,
  kWo,
  kBo,
  kFfnNorm,
  kFfnNormBias,
  kGate,
  kUp,
  kDown,
  kBiasUp,
  kBiasDown,
  kFinalNorm,
  kFinalNormBias,
  kChannels
};

class Seeder {
 public:
  Seeder(uint64_t seed, WeightType type, Backend& backend)
      : seed_(seed), type_(type), backend_(backend) {}

  uint64_t stream(Kind kind, int layer) const {
    return stream_of({seed_, kind, static_cast<uint64_t>(layer)});
  }

  // Normal entries; row r has the standard deviation `deviation` · row_scale[r] (all 1 when empty).
  Weight matrix(Kind kind, int layer, int rows, int cols, double deviation,
                const std::vector<double>& row_scale = {}) const {
    return normal(stream(kind, layer), rows, cols, deviation, row_scale, type_);
  }
  Weight bias(Kind kind, int layer, int n) const {
    return normal(stream(kind, layer), 1, n, 0.02, {}, WeightType::f32);
  }
  // Gains about 1, within ±0.25: a multiple of 2⁻¹⁹, exact in f32.
  Weight gain(Kind kind, int layer, int n) const {
    const uint64_t from = stream(kind, layer);
    return backend_.load(1, n, WeightType::f32, [=](int, float* out) {
      constexpr int kOne = 1 << 19;
      for (int i = 0; i < n; ++i) {
        out[i] = static_cast<float>(kOne + bell_of(hash_at(from, i))) / static_cast<float>(kOne);
      }
    });
  }

 private:
  Weight normal(uint64_t from, int rows, int cols, double deviation,
                const std::vector<double>& row_scale, WeightType type) const {
    return backend_.load(rows, cols, type, [&](int row, float* out) {
      const double scale = row_scale.empty() ? 1.0 : row_scale[row];
      fill_bell(from, static_cast<uint64_t>(row) * cols, cols, deviation * scale, out);
    });
  }

  uint64_t seed_;
  WeightType type_;
  Backend& backend_;
};

// The scale of each row of wk, and of each row of wq (after its KV head's channels).
struct RowScales {
  std::vector<double> q, k;
};

RowScales row_scales(const Seeder& seeder, const ModelConfig& c, int layer) {
  RowScales scales;
  const Rope* rope = c.family == Family::llama ? &c.rope : nullptr;
  for (int head = 0; head < c.kv_heads; ++head) {
    const ChannelScales channels =
        channel_scales(stream_of({seeder.stream(kChannels, layer), static_cast<uint64_t>(head)}),
                       c.head_dim, rope);
    scales.k.insert(scales.k.end(), channels.key.begin(), channels.key.end());
    for (int i = 0; i < c.group(); ++i) {
      scales.q.insert(scales.q.end(), channels.query.begin(), channels.query.end());
    }
  }
  return scales;
}

LayerWeights seeded_layer(const Seeder& seeder, const ModelConfig& c, int i) {
  const int q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  const bool gpt2 = c.family == Family::gpt2;
  // A norm's output has the length √d_model, so that this deviation gives unit-normal products.
  const double in = 1.0 / std::sqrt(c.d_model);
  // What a layer adds to the residual stream is of the order of the embeddings in it.
  const double out = in / std::sqrt(c.layers);
  const RowScales scales = row_scales(seeder, c, i);
  LayerWeights w;
  w.attn_norm = seeder.gain(kAttnNorm, i, c.d_model);
  w.wq = seeder.matrix(kWq, i, q, c.d_model, in, scales.q);
  w.wk = seeder.matrix(kWk, i, kv, c.d_model, in, scales.k);
  w.wv = seeder.matrix(kWv, i, kv, c.d_model, in);
  w.wo = seeder.matrix(kWo, i, c.d_model, q, out);
  w.ffn_norm = seeder.gain(kFfnNorm, i, c.d_model);
  if (!gpt2) w.w_gate = seeder.matrix(kGate, i, c.ffn, c.d_model, in);
  w.w_up = seeder.matrix(kUp, i, c.ffn, c.d_model, in);
  w.w_down = seeder.matrix(kDown, i, c.d_model, c.ffn, out);
  if (gpt2 || c.qkv_bias) {
    w.bq = seeder.bias(kBq, i, q);
    w.bk = seeder.bias(kBk, i, kv);
    w.bv = seeder.bias(kBv, i, kv);
  }
  if (gpt2) {
    w.attn_norm_bias = seeder.bias(kAttnNormBias, i, c.d_model);
    w.bo = seeder.bias(kBo, i, c.d_model);
    w.ffn_norm_bias = seeder.bias(kFfnNormBias, i, c.d_model);
    w.b_up = seeder.bias(kBiasUp, i, c.ffn);
    w.b_down = seeder.bias(kBiasDown, i, c.d_model);
  }
  return w;
}

}  // namespace

Weights seeded_weights(const ModelConfig& c, uint64_t seed, WeightType type, Backend& backend) {
  const Seeder seeder(seed, type, backend);
  const double deviation = 2.0 / std::sqrt(c.d_model);  // logits then spread by about 2
  Weights w;
  w.embedding = seeder.matrix(kEmbedding, 0, c.vocab, c.d_model, deviation);
  if (c.family == Family::gpt2) {
    w.positions = seeder.matrix(kPositions, 0, c.context, c.d_model, deviation / 2);
    w.final_norm_bias = seeder.bias(kFinalNormBias, 0, c.d_model);
  }
  for (int i = 0; i < c.layers; ++i) w.layers.push_back(seeded_layer(seeder, c, i));
  w.final_norm = seeder.gain(kFinalNorm, 0, c.d_model);
  w.lm_head =
      c.tied_embeddings ? w.embedding : seeder.matrix(kLmHead, 0, c.vocab, c.d_model, deviation);
  return w;
}

}  // namespace kvmark
