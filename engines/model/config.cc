#include "engines/model/config.h"

#include <fmt/ranges.h>

#include <cmath>

#include "engines/core/check.h"
#include "engines/core/nearest.h"

namespace kvmark {
namespace {

Rope rope(double theta, int dims, RopePairing pairing) { return {theta, dims, pairing}; }

ModelConfig seed_gqa() {
  ModelConfig c;
  c.name = "seed-gqa";
  c.layers = 4;
  c.d_model = 512;
  c.heads = 8;
  c.kv_heads = 2;
  c.head_dim = 64;
  c.ffn = 1408;
  c.vocab = 2048;
  c.context = 4096;
  c.rope = rope(10000, 64, RopePairing::halves);
  return c;
}

ModelConfig gpt2() {
  ModelConfig c;
  c.name = "gpt2";
  c.family = Family::gpt2;
  c.layers = 12;
  c.d_model = 768;
  c.heads = 12;
  c.kv_heads = 12;
  c.head_dim = 64;
  c.ffn = 3072;
  c.vocab = 50257;
  c.context = 1024;
  c.tied_embeddings = true;
  return c;
}

ModelConfig smollm2_135m() {
  ModelConfig c;
  c.name = "smollm2-135m";
  c.layers = 30;
  c.d_model = 576;
  c.heads = 9;
  c.kv_heads = 3;
  c.head_dim = 64;
  c.ffn = 1536;
  c.vocab = 49152;
  c.context = 8192;
  c.rope = rope(100000, 64, RopePairing::halves);
  c.tied_embeddings = true;
  return c;
}

ModelConfig llama_3_8b() {
  ModelConfig c;
  c.name = "llama-3-8b";
  c.layers = 32;
  c.d_model = 4096;
  c.heads = 32;
  c.kv_heads = 8;
  c.head_dim = 128;
  c.ffn = 14336;
  c.vocab = 128256;
  c.context = 8192;
  c.rope = rope(500000, 128, RopePairing::halves);
  return c;
}

ModelConfig qwen2_5_7b() {
  ModelConfig c;
  c.name = "qwen2.5-7b";
  c.layers = 28;
  c.d_model = 3584;
  c.heads = 28;
  c.kv_heads = 4;
  c.head_dim = 128;
  c.ffn = 18944;
  c.vocab = 152064;
  c.context = 32768;
  c.norm_eps = 1e-6f;
  c.rope = rope(1e6, 128, RopePairing::halves);
  c.qkv_bias = true;
  return c;
}

std::vector<ModelConfig> presets() {
  return {seed_gqa(), gpt2(), smollm2_135m(), llama_3_8b(), qwen2_5_7b()};
}

// Every size fits an int with room for the products that tensors are made of.
constexpr int kMaxSize = 1 << 24;

void check_size(const ModelConfig& c, const char* field, int64_t value) {
  if (value < 1 || value > kMaxSize) {
    throw UsageError(fmt::format("model {}: {} is {}; expected a whole number from 1 to {}", c.name,
                                 field, value, kMaxSize));
  }
}

}  // namespace

std::string_view family_name(Family family) { return family == Family::llama ? "llama" : "gpt2"; }

void check_config(const ModelConfig& c) {
  check_size(c, "layers", c.layers);
  check_size(c, "d_model", c.d_model);
  check_size(c, "heads", c.heads);
  check_size(c, "kv_heads", c.kv_heads);
  check_size(c, "head_dim", c.head_dim);
  check_size(c, "ffn", c.ffn);
  check_size(c, "vocab", c.vocab);
  check_size(c, "context", c.context);
  check_size(c, "heads * head_dim", int64_t{c.heads} * c.head_dim);
  if (c.heads % c.kv_heads != 0) {
    throw UsageError(fmt::format(
        "model {}: heads is {} and kv_heads is {}; heads must be a multiple of kv_heads, so that "
        "every stored head serves the same number of query heads",
        c.name, c.heads, c.kv_heads));
  }
  if (!(c.norm_eps >= 0) || !std::isfinite(c.norm_eps)) {
    throw UsageError(
        fmt::format("model {}: norm_eps is {}; expected a number ≥ 0", c.name, c.norm_eps));
  }
  if (c.family == Family::gpt2) {
    if (c.kv_heads != c.heads) {
      throw UsageError(fmt::format(
          "model {}: kv_heads is {} and heads is {}; the gpt2 family stores every head, so they "
          "must be equal (the llama family has grouped heads)",
          c.name, c.kv_heads, c.heads));
    }
    return;
  }
  if (c.rope.dims < 2 || c.rope.dims > c.head_dim || c.rope.dims % 2 != 0) {
    throw UsageError(fmt::format(
        "model {}: rope.dims is {}; expected an even number from 2 to head_dim ({}), because "
        "channels are rotated in pairs",
        c.name, c.rope.dims, c.head_dim));
  }
  if (!(c.rope.theta > 0) || !std::isfinite(c.rope.theta)) {
    throw UsageError(
        fmt::format("model {}: rope.theta is {}; expected a number > 0", c.name, c.rope.theta));
  }
}

ModelConfig model_preset(std::string_view name) {
  for (const ModelConfig& c : presets()) {
    if (c.name == name) return c;
  }
  const std::vector<std::string> names = model_preset_names();
  throw UsageError(fmt::format("unknown model preset `{}`{}; there are: {}", name,
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const ModelConfig& c : presets()) names.push_back(c.name);
  return names;
}

int64_t parameter_count(const ModelConfig& c) {
  const int64_t d = c.d_model, q = int64_t{c.heads} * c.head_dim,
                kv = int64_t{c.kv_heads} * c.head_dim, ffn = c.ffn;
  const int64_t embeddings = (c.tied_embeddings ? 1 : 2) * c.vocab * d;
  const int64_t attention = 2 * d * q + 2 * d * kv;
  if (c.family == Family::gpt2) {
    const int64_t norms = 2 * 2 * d, biases = q + 2 * kv + d + ffn + d;
    return embeddings + c.context * d + c.layers * (attention + 2 * d * ffn + norms + biases) +
           2 * d;
  }
  const int64_t biases = c.qkv_bias ? q + 2 * kv : 0;
  return embeddings + c.layers * (attention + 3 * d * ffn + 2 * d + biases) + d;
}

KvSpec kv_spec(const ModelConfig& c, int max_seqs, int max_len, int max_rows, bool repeat_kv) {
  KvSpec spec;
  spec.layers = c.layers;
  spec.heads = c.heads;
  spec.kv_heads = repeat_kv ? c.heads : c.kv_heads;
  spec.k_dim = c.head_dim;
  spec.v_dim = c.head_dim;
  if (c.family == Family::llama) spec.rope = c.rope;
  spec.max_seqs = max_seqs;
  spec.max_len = max_len;
  spec.max_rows = max_rows;
  return spec;
}

}  // namespace kvmark
