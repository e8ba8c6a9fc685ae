// The parameters of a decoder in a backend's memory, and where they come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/core/backend.h"
#include "engines/model/config.h"

namespace kvmark {

// Norm gains and biases are (1, n) and always f32. Matrices are (outputs, inputs).
struct LayerWeights {
  Weight attn_norm, attn_norm_bias;
  Weight wq, wk, wv, bq, bk, bv;  // biases empty where the family has none
  Weight wo, bo;                  // wo: (d_model, heads · head_dim)
  Weight ffn_norm, ffn_norm_bias;
  Weight w_gate, w_up, w_down, b_up, b_down;  // gpt2 has no gate
};

struct Weights {
  Weight embedding;  // (vocab, d_model)
  Weight positions;  // (context, d_model), gpt2
  std::vector<LayerWeights> layers;
  Weight final_norm, final_norm_bias;
  Weight lm_head;  // (vocab, d_model); the embedding itself where tied
};

// Random weights, a function of (config, seed) alone, the same on every machine: counter-based
// integers turned into normals by portable arithmetic. Scores spread like a real model's (standard
// deviation of q·k/√d about 1.5–3) and some key channels are large, so that lossy codecs meet what
// they meet in practice.
Weights seeded_weights(const ModelConfig& config, uint64_t seed, WeightType type, Backend& backend);

// From a GGUF file's tensors. Throws RuntimeError naming the file and the tensor that is missing or
// has the wrong shape.
class GgufFile;
ModelConfig config_from_gguf(const GgufFile& file);
Weights gguf_weights(const GgufFile& file, const ModelConfig& config, WeightType type,
                     Backend& backend);

}  // namespace kvmark
