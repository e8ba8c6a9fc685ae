#include "bench/plan/case.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <type_traits>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Enumerations by the names that they have in plans and records.
template <typename E, size_t N>
using Names = std::array<std::pair<E, const char*>, N>;

constexpr Names<Level, 2> kLevels{{{Level::model, "model"}, {Level::attention, "attention"}}};
constexpr Names<TokenMode, 2> kTokenModes{
    {{TokenMode::forced, "forced"}, {TokenMode::greedy, "greedy"}}};
constexpr Names<Counting, 1> kCountings{{{Counting::callgrind, "callgrind"}}};
constexpr Names<PoolOrder, 2> kPoolOrders{
    {{PoolOrder::fresh, "fresh"}, {PoolOrder::shuffled, "shuffled"}}};
constexpr Names<ModelSource::Kind, 3> kKinds{{{ModelSource::Kind::preset, "preset"},
                                              {ModelSource::Kind::file, "file"},
                                              {ModelSource::Kind::dir, "dir"}}};
constexpr Names<WeightType, 3> kWeightTypes{
    {{WeightType::f32, "f32"}, {WeightType::f16, "f16"}, {WeightType::bf16, "bf16"}}};
constexpr Names<Family, 2> kFamilies{{{Family::llama, "llama"}, {Family::gpt2, "gpt2"}}};
constexpr Names<RopePairing, 2> kPairings{
    {{RopePairing::adjacent, "adjacent"}, {RopePairing::halves, "halves"}}};

template <typename E, size_t N>
std::string name_of(const Names<E, N>& names, E value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  throw LogicError("an enumeration has a value without a name");
}

// 1e-05 for 1e-5f, not the 9.99999974e-06 of the same bits as a double.
double shortest(float value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rope_json(const Case& c) {
  if (c.model.family != Family::llama) return nullptr;
  return {{"theta", c.model.rope.theta},
          {"dims", c.model.rope.dims},
          {"pairing", name_of(kPairings, c.model.rope.pairing)}};
}

Json score_json(const ScoreSpec& score) {
  if (score.text.empty()) return nullptr;
  return {{"text", score.text}, {"positions", score.positions}, {"chunk", score.chunk}};
}

Json gate_json(const LossGate& gate) {
  if (!gate.attend_rel_rms_max && !gate.kld_mean_max && !gate.top1_min) return nullptr;
  return {{"attend_rel_rms_max", optional_json(gate.attend_rel_rms_max)},
          {"kld_mean_max", optional_json(gate.kld_mean_max)},
          {"top1_min", optional_json(gate.top1_min)}};
}

// Reads the keys of one object; a missing or null one leaves the target as it is.
class Reader {
 public:
  Reader(const Json& json, std::string name) : json_(json), name_(std::move(name)) {
    if (!json.is_object()) throw RuntimeError(fmt::format("{}: expected a JSON object", name_));
  }

  template <typename T>
  void get(const char* key, T& target) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return;
    if (!fits<T>(*it)) fail(key, *it);
    target = it->template get<T>();
  }

  void get(const char* key, std::optional<double>& target) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return;
    if (!it->is_number()) fail(key, *it);
    target = it->get<double>();
  }

  template <typename E, size_t N>
  void get(const char* key, const Names<E, N>& names, E& target) const {
    std::string text;
    get(key, text);
    if (text.empty()) return;
    for (const auto& [value, name] : names) {
      if (text == name) {
        target = value;
        return;
      }
    }
    fail(key, text);
  }

  template <typename F>
  void object(const char* key, F&& read) const {
    const auto it = json_.find(key);
    if (it != json_.end() && !it->is_null()) read(Reader(*it, name_ + "." + key));
  }

 private:
  // nlohmann converts between numbers silently; a record must say what it means.
  template <typename T>
  static bool fits(const Json& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value.is_boolean();
    } else if constexpr (std::is_same_v<T, int>) {
      return value.is_number_integer() && value >= std::numeric_limits<int>::min() &&
             value <= std::numeric_limits<int>::max();
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return value.is_number_unsigned() || (value.is_number_integer() && value >= 0);
    } else if constexpr (std::is_floating_point_v<T>) {
      return value.is_number();
    } else {
      return value.is_string();
    }
  }

  [[noreturn]] void fail(const char* key, const Json& value) const {
    throw RuntimeError(fmt::format("{}.{}: cannot be read from {}", name_, key, value.dump()));
  }

  const Json& json_;
  std::string name_;
};

void read_model(const Reader& r, ModelConfig& m) {
  r.get("model", m.name);
  r.get("family", kFamilies, m.family);
  r.get("layers", m.layers);
  r.get("d_model", m.d_model);
  r.get("heads", m.heads);
  r.get("kv_heads", m.kv_heads);
  r.get("head_dim", m.head_dim);
  r.get("ffn", m.ffn);
  r.get("vocab", m.vocab);
  r.get("context", m.context);
  r.get("norm_eps", m.norm_eps);
  r.get("qkv_bias", m.qkv_bias);
  r.get("tied_embeddings", m.tied_embeddings);
  r.object("rope", [&](const Reader& rope) {
    rope.get("theta", m.rope.theta);
    rope.get("dims", m.rope.dims);
    rope.get("pairing", kPairings, m.rope.pairing);
  });
}

// Without what stands at its default, so that fields added later change nothing; sorted.
nlohmann::json without_defaults(const nlohmann::json& value, const nlohmann::json& defaults) {
  nlohmann::json kept = nlohmann::json::object();
  for (const auto& [key, v] : value.items()) {
    const auto it = defaults.find(key);
    if (it == defaults.end()) {
      kept[key] = v;
    } else if (*it != v) {
      kept[key] = v.is_object() && it->is_object() ? without_defaults(v, *it) : v;
    }
  }
  return kept;
}

nlohmann::json canonical(const Case& c) {
  Case plain = c;
  plain.gate = {};
  if (plain.source.kind != ModelSource::Kind::preset) {
    plain.source.name = std::filesystem::path(c.source.name).lexically_normal().filename().string();
  }
  plain.score.text = std::filesystem::path(c.score.text).filename().string();
  Case defaults;
  defaults.model.family = c.model.family;  // both have a rope, or neither, and the same for scoring
  defaults.score.text = c.score.text;
  nlohmann::json json = without_defaults(to_json(plain), to_json(defaults));
  json["family"] = name_of(kFamilies, c.model.family);
  if (!c.score.text.empty()) json["score"]["text"] = plain.score.text;
  json["engine"] = c.engine.name();
  json.erase("preset");
  json.erase("seq_len");
  return json;
}

// FNV-1a (Fowler, Noll, Vo), 64 bits.
std::string hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", h);
}

}  // namespace

Json to_json(const Case& c) {
  const ModelConfig& m = c.model;
  return {
      {"engine", c.engine.name()},
      {"preset", c.preset.empty() ? Json(nullptr) : Json(c.preset)},
      {"device", c.device},
      {"model", m.name},
      {"family", name_of(kFamilies, m.family)},
      {"level", name_of(kLevels, c.level)},
      {"weights", name_of(kWeightTypes, c.source.weights)},
      {"layers", m.layers},
      {"d_model", m.d_model},
      {"heads", m.heads},
      {"kv_heads", m.kv_heads},
      {"head_dim", m.head_dim},
      {"prompt_len", c.prompt_len},
      {"gen_len", c.gen_len},
      {"seq_len", c.seq_len()},
      {"max_seq_len", c.max_seq_len},
      {"batch", c.batch},
      {"threads", c.threads},
      {"pin", c.pin},
      {"count", c.counted() ? Json(name_of(kCountings, c.count)) : Json(nullptr)},
      {"seed", c.seed},
      {"pool_order", name_of(kPoolOrders, c.pool_order)},
      {"tokens", name_of(kTokenModes, c.tokens)},
      {"repeat_kv", c.repeat_kv},
      {"ffn", m.ffn},
      {"vocab", m.vocab},
      {"context", m.context},
      {"norm_eps", shortest(m.norm_eps)},
      {"rope", rope_json(c)},
      {"qkv_bias", m.qkv_bias},
      {"tied_embeddings", m.tied_embeddings},
      {"source",
       {{"kind", name_of(kKinds, c.source.kind)},
        {"name", c.source.name},
        {"seed", c.source.seed}}},
      {"score", score_json(c.score)},
      {"gate", gate_json(c.gate)},
  };
}

Case case_from_json(const Json& json) {
  const Reader r(json, "case");
  Case c;
  std::string engine = c.engine.name();
  r.get("engine", engine);
  c.engine = parse_engine(engine);
  r.get("preset", c.preset);
  r.get("device", c.device);
  read_model(r, c.model);
  r.get("level", kLevels, c.level);
  r.get("weights", kWeightTypes, c.source.weights);
  r.get("prompt_len", c.prompt_len);
  r.get("gen_len", c.gen_len);
  r.get("max_seq_len", c.max_seq_len);
  r.get("batch", c.batch);
  r.get("threads", c.threads);
  r.get("pin", c.pin);
  r.get("count", kCountings, c.count);
  r.get("seed", c.seed);
  r.get("pool_order", kPoolOrders, c.pool_order);
  r.get("tokens", kTokenModes, c.tokens);
  r.get("repeat_kv", c.repeat_kv);
  r.object("source", [&](const Reader& source) {
    source.get("kind", kKinds, c.source.kind);
    source.get("name", c.source.name);
    source.get("seed", c.source.seed);
  });
  r.object("score", [&](const Reader& score) {
    score.get("text", c.score.text);
    score.get("positions", c.score.positions);
    score.get("chunk", c.score.chunk);
  });
  r.object("gate", [&](const Reader& gate) {
    gate.get("attend_rel_rms_max", c.gate.attend_rel_rms_max);
    gate.get("kld_mean_max", c.gate.kld_mean_max);
    gate.get("top1_min", c.gate.top1_min);
  });
  return c;
}

std::string case_id(const Case& c) { return hash(canonical(c).dump()); }

std::string group_id(const Case& c) {
  nlohmann::json json = canonical(c);
  json.erase("engine");
  return hash(json.dump());
}

}  // namespace kvmark
