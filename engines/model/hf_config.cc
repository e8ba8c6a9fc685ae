// Hugging Face's config.json → ModelConfig.
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engines/core/check.h"
#include "engines/model/config.h"

namespace kvmark {
namespace {

using nlohmann::json;

// The keys of one file, with errors that name file and key.
class HfConfig {
 public:
  explicit HfConfig(const std::string& dir) : path_(dir + "/config.json") {
    std::ifstream in(path_);
    if (!in) {
      throw UsageError(path_ +
                       ": cannot be read; expected a Hugging Face model folder with a "
                       "config.json");
    }
    try {
      json_ = json::parse(in);
    } catch (const json::exception& error) {  // syntax, or a number that overflows
      const std::string what = error.what();  // "[json.exception.…] what is wrong"
      throw UsageError(
          fmt::format("{}: not valid JSON: {}", path_, what.substr(what.find(']') + 2)));
    }
    if (!json_.is_object()) throw UsageError(path_ + ": expected a JSON object");
  }

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  int integer(const char* key) const {
    const json& value = require(key, "a whole number ≥ 1");
    if (!value.is_number_integer() || value < 1 || value > std::numeric_limits<int>::max()) {
      wrong(key, "a whole number ≥ 1", value);
    }
    return value.get<int>();
  }
  int integer_or(const char* key, int otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }

  double number(const char* key) const {
    const json& value = require(key, "a number > 0");
    if (!value.is_number() || !(value.get<double>() > 0)) wrong(key, "a number > 0", value);
    return value.get<double>();
  }
  double number_or(const char* key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }

  std::string text(const char* key) const {
    const json& value = require(key, "a string");
    if (!value.is_string()) wrong(key, "a string", value);
    return value.get<std::string>();
  }

  bool flag_or(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_[key].is_boolean()) wrong(key, "true or false", json_[key]);
    return json_[key].get<bool>();
  }

  const json& operator[](const char* key) const { return json_[key]; }

  [[noreturn]] void refuse(const char* key, const std::string& why) const {
    throw UsageError(fmt::format("{}: key \"{}\" is {}: {}", path_, key, json_[key].dump(), why));
  }
  // Refuses an activation other than the one that the family's forward computes.
  void require_activation(const char* key, std::initializer_list<const char*> known) const {
    if (!has(key)) return;
    for (const char* name : known) {
      if (json_[key] == name) return;
    }
    refuse(key,
           fmt::format("expected \"{}\", the only activation of this family here", *known.begin()));
  }

 private:
  const json& require(const char* key, const char* expected) const {
    if (!has(key)) {
      throw UsageError(fmt::format("{}: key \"{}\" is missing; expected {}", path_, key, expected));
    }
    return json_[key];
  }
  [[noreturn]] void wrong(const char* key, const char* expected, const json& found) const {
    throw UsageError(
        fmt::format("{}: key \"{}\": expected {}, found {}", path_, key, expected, found.dump()));
  }

  std::string path_;
  json json_;
};

// Position scaling would change the angles; only the plain rotation is computed here.
void refuse_rope_scaling(const HfConfig& hf, const char* key) {
  if (!hf.has(key)) return;
  const json& scaling = hf[key];
  for (const char* type_key : {"rope_type", "type"}) {
    if (!scaling.is_object() || !scaling.contains(type_key)) continue;
    if (scaling[type_key] == "default") return;
    hf.refuse(key, "scaled rotary positions are not supported; expected null or \"default\"");
  }
  if (std::string_view(key) == "rope_scaling") {
    hf.refuse(key, "expected null or an object with \"rope_type\": \"default\"");
  }
}

double rope_theta(const HfConfig& hf) {
  constexpr const char* kNested = "rope_parameters";
  if (hf.has(kNested) && hf[kNested].is_object() && hf[kNested].contains("rope_theta")) {
    const json& theta = hf[kNested]["rope_theta"];
    if (!theta.is_number()) hf.refuse(kNested, "expected a number for \"rope_theta\"");
    return theta.get<double>();
  }
  return hf.number_or("rope_theta", 10000.0);
}

void read_llama(const HfConfig& hf, const std::string& type, ModelConfig& c) {
  c.family = Family::llama;
  c.layers = hf.integer("num_hidden_layers");
  c.d_model = hf.integer("hidden_size");
  c.heads = hf.integer("num_attention_heads");
  c.kv_heads = hf.integer_or("num_key_value_heads", c.heads);
  c.head_dim = hf.integer_or("head_dim", c.d_model / c.heads);
  c.ffn = hf.integer("intermediate_size");
  c.vocab = hf.integer("vocab_size");
  c.context = hf.integer("max_position_embeddings");
  c.norm_eps = static_cast<float>(hf.number_or("rms_norm_eps", 1e-6));
  c.rope = {rope_theta(hf), c.head_dim, RopePairing::halves};
  c.qkv_bias = type == "qwen2";
  c.tied_embeddings = hf.flag_or("tie_word_embeddings", false);

  hf.require_activation("hidden_act", {"silu", "swish"});
  refuse_rope_scaling(hf, "rope_scaling");
  refuse_rope_scaling(hf, "rope_parameters");
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (hf.flag_or(key, false)) {
      hf.refuse(key,
                "biases on the output and feed-forward products of the llama family are not "
                "supported; expected false");
    }
  }
  if (hf.has("partial_rotary_factor") && hf.number("partial_rotary_factor") != 1) {
    hf.refuse("partial_rotary_factor", "a partly rotated head is not supported; expected 1");
  }
  const bool window = hf.has("sliding_window") && hf.integer("sliding_window") < c.context &&
                      hf.flag_or("use_sliding_window", type != "qwen2");
  if (window) {
    hf.refuse("sliding_window",
              "a model trained with a window needs an engine with that window, "
              "which is not supported yet; expected null");
  }
}

void read_gpt2(const HfConfig& hf, ModelConfig& c) {
  c.family = Family::gpt2;
  c.layers = hf.integer("n_layer");
  c.d_model = hf.integer("n_embd");
  c.heads = hf.integer("n_head");
  c.kv_heads = c.heads;
  c.head_dim = c.d_model / c.heads;
  c.ffn = hf.integer_or("n_inner", 4 * c.d_model);
  c.vocab = hf.integer("vocab_size");
  c.context = hf.integer(hf.has("n_positions") ? "n_positions" : "n_ctx");
  c.norm_eps = static_cast<float>(hf.number_or("layer_norm_epsilon", 1e-5));
  c.tied_embeddings = hf.flag_or("tie_word_embeddings", true);

  hf.require_activation("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  if (c.d_model % c.heads != 0) hf.refuse("n_embd", "expected a multiple of \"n_head\"");
  if (!hf.flag_or("scale_attn_weights", true)) {
    hf.refuse("scale_attn_weights", "unscaled attention is not supported; expected true");
  }
  if (hf.flag_or("scale_attn_by_inverse_layer_idx", false)) {
    hf.refuse("scale_attn_by_inverse_layer_idx",
              "attention scaled by the layer's number is not supported; expected false");
  }
}

std::string folder_name(const std::string& dir) {
  const std::filesystem::path path = std::filesystem::path(dir + "/.").lexically_normal();
  return path.parent_path().filename().string();
}

}  // namespace

ModelConfig config_from_hf(const std::string& dir) {
  const HfConfig hf(dir);
  ModelConfig c;
  c.name = folder_name(dir);
  const std::string type = hf.text("model_type");
  if (type == "llama" || type == "mistral" || type == "qwen2") {
    read_llama(hf, type, c);
  } else if (type == "gpt2") {
    read_gpt2(hf, c);
  } else {
    hf.refuse("model_type",
              "this architecture is not supported; expected llama, mistral, qwen2 or "
              "gpt2");
  }
  check_config(c);
  return c;
}

}  // namespace kvmark
