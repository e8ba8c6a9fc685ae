// The shape of a decoder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engines/core/kv_engine.h"
#include "engines/core/tensor.h"

namespace kvmark {

enum class Family { llama, gpt2 };
std::string_view family_name(Family family);

// llama: RMSNorm, RoPE, SwiGLU, GQA. gpt2: LayerNorm, learned positions, GELU, biases everywhere.
struct ModelConfig {
  std::string name;
  Family family = Family::llama;
  int layers = 0;
  int d_model = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn = 0;  // inner width
  int vocab = 0;
  int context = 0;  // positions the model was made for
  float norm_eps = 1e-5f;
  Rope rope;              // llama
  bool qkv_bias = false;  // llama (Qwen2); gpt2 has all biases always
  bool tied_embeddings = false;

  int group() const { return heads / kv_heads; }
};

// Throws UsageError that names the field when a shape is impossible (heads not a multiple of
// kv_heads, odd rotary width, a size < 1, …).
void check_config(const ModelConfig& config);

// seed-gqa, gpt2, smollm2-135m, llama-3-8b, qwen2.5-7b. Throws UsageError with the nearest name.
ModelConfig model_preset(std::string_view name);
std::vector<std::string> model_preset_names();

// From a Hugging Face `config.json` (model_type llama, mistral, qwen2 or gpt2) in `dir`. Throws
// UsageError that names the file and the key.
ModelConfig config_from_hf(const std::string& dir);

// Parameters, by formula.
int64_t parameter_count(const ModelConfig& config);

// The cache that this model needs. `repeat_kv` stores every query head's copy of its KV head.
KvSpec kv_spec(const ModelConfig& config, int max_seqs, int max_len, int max_rows, bool repeat_kv);

}  // namespace kvmark
