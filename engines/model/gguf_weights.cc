// GGUF metadata → ModelConfig, GGUF tensors → Weights.
#include <algorithm>
#include <filesystem>
#include <set>

#include "engines/core/check.h"
#include "engines/model/gguf.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

int integer_in(const GgufFile& file, const std::string& key) {
  const int64_t value = file.integer(key);
  constexpr int64_t kMax = 1 << 24;
  if (value < 1 || value > kMax) {
    throw RuntimeError(fmt::format("{}: key {} is {}; expected a whole number from 1 to {}",
                                   file.path(), key, value, kMax));
  }
  return static_cast<int>(value);
}

int integer_or(const GgufFile& file, const std::string& key, int otherwise) {
  return file.find(key) ? integer_in(file, key) : otherwise;
}

const GgufTensor& require_tensor(const GgufFile& file, const std::string& name) {
  const GgufTensor* tensor = file.tensor(name);
  if (!tensor) {
    throw RuntimeError(
        fmt::format("{}: tensor {} is missing; the file is cut short or not a model "
                    "of the architecture {}",
                    file.path(), name, file.text("general.architecture")));
  }
  return *tensor;
}

// What would change the numbers and is not computed here must not pass silently.
void refuse_unsupported(const GgufFile& file, const std::string& arch, const ModelConfig& c) {
  auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("{}: {}", file.path(), what));
  };
  const std::string scaling = arch + ".rope.scaling.type";
  if (file.find(scaling) && file.text(scaling) != "none") {
    refuse(fmt::format("key {} is \"{}\": scaled rotary positions are not supported", scaling,
                       file.text(scaling)));
  }
  if (file.tensor("rope_freqs.weight")) {
    refuse("tensor rope_freqs.weight: scaled rotary frequencies are not supported");
  }
  const std::string experts = arch + ".expert_count";
  if (file.find(experts) && file.integer(experts) > 0) {
    refuse(fmt::format("key {}: mixtures of experts are not supported", experts));
  }
  const std::string window = arch + ".attention.sliding_window";
  if (file.find(window) && file.integer(window) > 0 && file.integer(window) < c.context) {
    refuse(fmt::format("key {}: a model trained with a window is not supported yet", window));
  }
  const std::string value_length = arch + ".attention.value_length";
  if (integer_or(file, value_length, c.head_dim) != c.head_dim) {
    refuse(
        fmt::format("key {}: value heads that are not as wide as key heads ({}) are not "
                    "supported",
                    value_length, c.head_dim));
  }
}

// Reads matrices of the file into the backend, with their shapes checked.
class Loader {
 public:
  Loader(const GgufFile& file, WeightType type, Backend& backend)
      : file_(file), type_(type), backend_(backend) {}

  Weight matrix(const std::string& name, int rows, int cols) const {
    return part(name, 0, rows, rows, cols, type_);
  }
  // Rows [first, first + rows) of a matrix that has `all` rows.
  Weight rows_of(const std::string& name, int first, int rows, int all, int cols) const {
    return part(name, first, rows, all, cols, type_);
  }
  // A norm gain or a bias: one row of f32.
  Weight vector(const std::string& name, int n) const {
    return part(name, 0, 1, 1, n, WeightType::f32);
  }
  // Elements [first, first + n) of a bias of `all` elements.
  Weight vector_part(const std::string& name, int first, int n, int all) const {
    const GgufTensor& tensor = checked(name, 1, all);
    std::vector<float> row(all);
    decode_gguf_row(tensor, 0, row.data());
    return backend_.load(1, n, WeightType::f32,
                         [&](int, float* out) { std::copy_n(row.begin() + first, n, out); });
  }

  // A tensor that the forward does not know, such as a further bias, would make its numbers wrong.
  void check_all_used() const {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (used_.count(tensor.name)) continue;
      throw UsageError(
          fmt::format("{}: tensor {} is not part of the architecture {} as it is "
                      "computed here",
                      file_.path(), tensor.name, file_.text("general.architecture")));
    }
  }

 private:
  const GgufTensor& checked(const std::string& name, int rows, int cols) const {
    const GgufTensor& tensor = require_tensor(file_, name);
    if (tensor.rows != rows || tensor.cols != cols) {
      throw RuntimeError(fmt::format("{}: tensor {} has {} rows of {}; expected {} rows of {}",
                                     file_.path(), name, tensor.rows, tensor.cols, rows, cols));
    }
    used_.insert(name);
    return tensor;
  }
  Weight part(const std::string& name, int first, int rows, int all, int cols,
              WeightType type) const {
    const GgufTensor& tensor = checked(name, all, cols);
    return backend_.load(rows, cols, type,
                         [&](int row, float* out) { decode_gguf_row(tensor, first + row, out); });
  }

  const GgufFile& file_;
  WeightType type_;
  Backend& backend_;
  mutable std::set<std::string, std::less<>> used_;
};

void load_llama_layer(const Loader& load, const std::string& blk, const ModelConfig& c,
                      LayerWeights& layer) {
  const int q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  layer.wq = load.matrix(blk + "attn_q.weight", q, c.d_model);
  layer.wk = load.matrix(blk + "attn_k.weight", kv, c.d_model);
  layer.wv = load.matrix(blk + "attn_v.weight", kv, c.d_model);
  if (c.qkv_bias) {
    layer.bq = load.vector(blk + "attn_q.bias", q);
    layer.bk = load.vector(blk + "attn_k.bias", kv);
    layer.bv = load.vector(blk + "attn_v.bias", kv);
  }
  layer.w_gate = load.matrix(blk + "ffn_gate.weight", c.ffn, c.d_model);
}

// GPT-2 keeps q, k and v in one matrix, one behind the other.
void load_gpt2_layer(const Loader& load, const std::string& blk, const ModelConfig& c,
                     LayerWeights& layer) {
  const int q = c.heads * c.head_dim, all = 3 * q;
  Weight* const matrices[] = {&layer.wq, &layer.wk, &layer.wv};
  Weight* const biases[] = {&layer.bq, &layer.bk, &layer.bv};
  for (int i = 0; i < 3; ++i) {
    *matrices[i] = load.rows_of(blk + "attn_qkv.weight", i * q, q, all, c.d_model);
    *biases[i] = load.vector_part(blk + "attn_qkv.bias", i * q, q, all);
  }
  layer.attn_norm_bias = load.vector(blk + "attn_norm.bias", c.d_model);
  layer.ffn_norm_bias = load.vector(blk + "ffn_norm.bias", c.d_model);
  layer.bo = load.vector(blk + "attn_output.bias", c.d_model);
  layer.b_up = load.vector(blk + "ffn_up.bias", c.ffn);
  layer.b_down = load.vector(blk + "ffn_down.bias", c.d_model);
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& file) {
  const std::string& arch = file.text("general.architecture");
  if (arch != "llama" && arch != "qwen2" && arch != "gpt2") {
    throw UsageError(
        fmt::format("{}: the architecture \"{}\" is not supported; expected llama, "
                    "qwen2 or gpt2",
                    file.path(), arch));
  }
  ModelConfig c;
  c.name = std::filesystem::path(file.path()).stem().string();
  c.family = arch == "gpt2" ? Family::gpt2 : Family::llama;
  c.layers = integer_in(file, arch + ".block_count");
  c.d_model = integer_in(file, arch + ".embedding_length");
  c.heads = integer_in(file, arch + ".attention.head_count");
  c.kv_heads = integer_or(file, arch + ".attention.head_count_kv", c.heads);
  c.head_dim = integer_or(file, arch + ".attention.key_length", c.d_model / c.heads);
  c.ffn = integer_in(file, arch + ".feed_forward_length");
  c.context = integer_in(file, arch + ".context_length");
  c.vocab = static_cast<int>(require_tensor(file, "token_embd.weight").rows);
  c.tied_embeddings = file.tensor("output.weight") == nullptr;
  if (c.family == Family::gpt2) {
    c.norm_eps = static_cast<float>(file.number(arch + ".attention.layer_norm_epsilon"));
  } else {
    c.norm_eps = static_cast<float>(file.number(arch + ".attention.layer_norm_rms_epsilon"));
    const std::string theta = arch + ".rope.freq_base";
    c.rope.theta = file.find(theta) ? file.number(theta) : 10000.0;
    c.rope.dims = integer_or(file, arch + ".rope.dimension_count", c.head_dim);
    // Converters permute the rows of wq and wk of `llama` files, so that pairs are adjacent.
    c.rope.pairing = arch == "llama" ? RopePairing::adjacent : RopePairing::halves;
    c.qkv_bias = file.tensor("blk.0.attn_q.bias") != nullptr;
  }
  refuse_unsupported(file, arch, c);
  try {
    check_config(c);
  } catch (const UsageError& error) {
    throw RuntimeError(fmt::format("{}: {}", file.path(), error.what()));
  }
  return c;
}

Weights gguf_weights(const GgufFile& file, const ModelConfig& c, WeightType type,
                     Backend& backend) {
  const Loader load(file, type, backend);
  const bool gpt2 = c.family == Family::gpt2;
  Weights w;
  w.embedding = load.matrix("token_embd.weight", c.vocab, c.d_model);
  if (gpt2) w.positions = load.matrix("position_embd.weight", c.context, c.d_model);
  for (int i = 0; i < c.layers; ++i) {
    const std::string blk = fmt::format("blk.{}.", i);
    LayerWeights& layer = w.layers.emplace_back();
    layer.attn_norm = load.vector(blk + "attn_norm.weight", c.d_model);
    (gpt2 ? load_gpt2_layer : load_llama_layer)(load, blk, c, layer);
    layer.wo = load.matrix(blk + "attn_output.weight", c.d_model, c.heads * c.head_dim);
    layer.ffn_norm = load.vector(blk + "ffn_norm.weight", c.d_model);
    layer.w_up = load.matrix(blk + "ffn_up.weight", c.ffn, c.d_model);
    layer.w_down = load.matrix(blk + "ffn_down.weight", c.d_model, c.ffn);
  }
  w.final_norm = load.vector("output_norm.weight", c.d_model);
  if (gpt2) w.final_norm_bias = load.vector("output_norm.bias", c.d_model);
  w.lm_head = c.tied_embeddings ? w.embedding : load.matrix("output.weight", c.vocab, c.d_model);
  load.check_all_used();
  return w;
}

}  // namespace kvmark
