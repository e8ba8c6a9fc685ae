#include "bench/plan/shape.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "engines/core/check.h"
#include "engines/model/gguf.h"
#include "engines/model/tokenizer.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

constexpr const char* kSources[] = {"preset", "file", "dir"};

WeightType weight_type(const std::string& name) {
  if (name == "f16") return WeightType::f16;
  return name == "bf16" ? WeightType::bf16 : WeightType::f32;
}

// The fields that change a shape, in the order in which they are applied.
constexpr const char* kShapeKeys[] = {"model.layers",   "model.d_model",        "model.heads",
                                      "model.kv_heads", "model.head_dim",       "model.ffn",
                                      "model.vocab",    "model.context",        "model.rope_theta",
                                      "model.qkv_bias", "model.tied_embeddings"};

// Applies the plan's fields to a shape.
class Reshaper {
 public:
  Reshaper(const Choice& choice, ModelConfig& model) : choice_(choice), m_(model) {}

  void apply() {
    const ModelConfig old = m_;
    if (const Value* layers = find("model.layers"); layers != nullptr && !layers->is_word()) {
      m_.layers = layers->integer();
    }
    set_heads();
    if (const Value* width = find("model.d_model")) set_width(*width, old);
    set("model.head_dim", m_.head_dim);
    if (old.rope.dims == old.head_dim) m_.rope.dims = m_.head_dim;
    set("model.ffn", m_.ffn);
    set("model.vocab", m_.vocab);
    set("model.context", m_.context);
    set_llama_fields();
    if (const Value* tied = find("model.tied_embeddings")) m_.tied_embeddings = tied->boolean();
  }

 private:
  const Value* find(const char* key) const { return find_value(choice_, key); }

  void set(const char* key, int& field) const {
    if (const Value* value = find(key)) field = value->integer();
  }

  void set_heads() {
    const Value* heads = find("model.heads");
    const Value* kv_heads = find("model.kv_heads");
    if (heads != nullptr) {
      const std::string& text = heads->text();
      const size_t colon = text.find(':');
      m_.heads = std::stoi(text);
      if (colon != std::string::npos) {
        if (kv_heads != nullptr) {
          fail_value(*kv_heads, "model.kv_heads",
                     fmt::format("model.heads gives the KV heads already (`{}`)", text));
        }
        m_.kv_heads = std::stoi(text.substr(colon + 1));
      } else if (m_.family == Family::gpt2) {
        m_.kv_heads = m_.heads;
      }
    }
    if (kv_heads != nullptr) m_.kv_heads = kv_heads->integer();
  }

  // Another width: the heads share it as before, and the inner width keeps its proportion.
  void set_width(const Value& width, const ModelConfig& old) {
    m_.d_model = width.integer();
    if (find("model.head_dim") == nullptr) {
      if (old.heads * old.head_dim != old.d_model || m_.d_model % m_.heads != 0) {
        fail_value(width, "model.d_model",
                   fmt::format("{} channels cannot be shared out over {} heads as in {}; give "
                               "model.head_dim too",
                               m_.d_model, m_.heads, old.name));
      }
      m_.head_dim = m_.d_model / m_.heads;
    }
    m_.ffn = static_cast<int>(int64_t{old.ffn} * m_.d_model / old.d_model);
  }

  void set_llama_fields() {
    for (const char* key : {"model.rope_theta", "model.qkv_bias"}) {
      const Value* value = find(key);
      if (value != nullptr && m_.family != Family::llama) {
        fail_value(*value, key,
                   fmt::format("only the llama family has it, {} is of the {} family", m_.name,
                               family_name(m_.family)));
      }
    }
    if (const Value* theta = find("model.rope_theta")) m_.rope.theta = theta->number();
    if (const Value* bias = find("model.qkv_bias")) m_.qkv_bias = bias->boolean();
  }

  const Choice& choice_;
  ModelConfig& m_;
};

// The value to blame for a shape that cannot be: what a flag changed, else the plan's first.
const Value* first_shape_value(const Choice& choice, std::string& key) {
  for (const bool flag : {true, false}) {
    for (const char* name : kShapeKeys) {
      const Value* value = find_value(choice, name);
      if (value == nullptr || value->flag != flag) continue;
      key = name;
      return value;
    }
  }
  return nullptr;
}

}  // namespace

const Value* find_value(const Choice& choice, const std::string& key) {
  const auto it = choice.find(key);
  return it == choice.end() ? nullptr : it->second;
}

void fail_value(const Value& value, const std::string& key, const std::string& text) {
  throw UsageError(value.flag ? fmt::format("{}: {}", value.where, text)
                              : fmt::format("{}: {}: {}", value.where, key, text));
}

const ModelConfig& ModelShapes::base(const std::string& key, const Value& value) {
  const std::string id = key + "=" + value.text();
  if (const auto it = read_.find(id); it != read_.end()) return it->second;
  try {
    ModelConfig config;
    if (key == "model.preset") {
      config = model_preset(value.text());
    } else if (key == "model.dir") {
      config = config_from_hf(value.text());
    } else {
      config = config_from_gguf(GgufFile(value.text()));
    }
    return read_.emplace(id, std::move(config)).first->second;
  } catch (const UsageError& e) {
    fail_value(value, key, e.what());
  } catch (const RuntimeError& e) {
    fail_value(value, key, e.what());
  }
}

int ModelShapes::text_tokens(const Value& text, const std::string& model_file) {
  if (const auto it = tokens_.find(model_file); it != tokens_.end()) return it->second;
  if (std::error_code error; !std::filesystem::is_regular_file(text.text(), error)) {
    fail_value(text, "score.text",
               fmt::format("{} is no file; expected a UTF-8 text file", text.text()));
  }
  std::ifstream in(text.text(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) fail_value(text, "score.text", fmt::format("{} cannot be read", text.text()));
  try {
    const auto tokens = Tokenizer(GgufFile(model_file)).encode(bytes);
    return tokens_[model_file] = static_cast<int>(tokens.size());
  } catch (const RuntimeError& e) {
    fail_value(text, "score.text", e.what());
  }
}

void ModelShapes::build(const Choice& choice, Case& c) {
  const Value* source = nullptr;
  std::string source_key;
  for (int i = 0; i < 3; ++i) {
    const std::string key = std::string("model.") + kSources[i];
    if (const Value* value = find_value(choice, key)) {
      source = value;
      source_key = key;
      c.source.kind = static_cast<ModelSource::Kind>(i);
    }
  }
  c.source.name = source->text();
  c.source.seed = choice.at("model.weights.seed")->seed();
  c.source.weights = c.source.real() ? WeightType::f16 : WeightType::f32;
  if (const Value* dtype = find_value(choice, "model.weights.dtype")) {
    c.source.weights = weight_type(dtype->text());
  }
  c.model = base(source_key, *source);

  std::string key;
  const Value* shape = first_shape_value(choice, key);
  if (shape == nullptr) return;
  if (c.source.real()) {
    fail_value(*shape, key,
               fmt::format("the shape of a file is fixed ({}); leave this out, or take "
                           "a preset or a folder",
                           c.source.name));
  }
  Reshaper(choice, c.model).apply();
  try {
    check_config(c.model);
  } catch (const UsageError& e) {
    fail_value(*shape, key, e.what());
  }
}

}  // namespace kvmark
