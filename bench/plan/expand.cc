#include "bench/plan/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/plan/fields.h"
#include "bench/plan/shape.h"
#include "engines/catalog/catalog.h"
#include "engines/core/affinity.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr size_t kMaxCases = 10000;
// More than any machine has: sizes past it are a slip of the pen, and would overflow the formulas.
constexpr double kMaxBytes = 16.0 * 1024 * 1024 * 1024 * 1024;
constexpr int kAttentionRounding = 64;
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kMaxAutoLayers = 16384;  // more would measure the start of layers, not their bytes

int cores_available() { return std::max(1, static_cast<int>(allowed_cpus().size())); }

Value derived(std::variant<bool, int64_t, double, std::string> data, const std::string& path) {
  return {std::move(data), path, false, false};
}

const Value* first_given(const Values& values, const std::string& key) {
  const auto it = values.find(key);
  return it != values.end() && it->second.front().given ? &it->second.front() : nullptr;
}

void complete_source(Values& values, const std::string& path) {
  std::vector<std::string> given;
  for (const char* key : {"model.preset", "model.file", "model.dir"}) {
    if (values.count(key)) given.push_back(key);
  }
  if (given.size() > 1) {
    fail_value(values.at(given[1]).front(), given[1],
               fmt::format("{} is given already; a model comes from one of preset, file and dir",
                           given[0]));
  }
  if (given.empty()) values["model.preset"] = {derived(std::string("seed-gqa"), path)};
}

// prompt_len, gen_len and seq_len: two of them give the third.
void complete_lengths(Values& values) {
  const Value* seq = first_given(values, "workload.seq_len");
  if (seq == nullptr) return;
  const bool prompt = first_given(values, "workload.prompt_len") != nullptr;
  if (prompt && first_given(values, "workload.gen_len") != nullptr) {
    fail_value(*seq, "workload.seq_len",
               "prompt_len and gen_len are given too; seq_len is their sum, so leave one out");
  }
  values.erase(prompt ? "workload.gen_len" : "workload.prompt_len");
}

// Counts are the same in every round.
void complete_counting(Values& values, const std::string& path) {
  if (values.count("count") == 0) return;
  values["sampling.rounds"] = {derived(int64_t{1}, path)};
  if (values.count("threads") == 0) values["threads"] = {derived(int64_t{1}, path)};
}

void resolve_paths(Values& values, const std::string& key, const std::string& path) {
  const auto it = values.find(key);
  if (it == values.end()) return;
  for (Value& value : it->second) {
    const std::filesystem::path text(value.text());
    std::error_code error;
    if (text.is_absolute() || value.flag) {
      if (std::filesystem::exists(text, error)) continue;
    } else {
      const auto beside = (std::filesystem::path(path).parent_path() / text).lexically_normal();
      if (std::filesystem::exists(beside, error)) {
        value.data = beside.string();
        continue;
      }
      if (std::filesystem::exists(text, error)) continue;
    }
    const char* hint = key == "model.file" ? "; `make model` fetches SmolLM2 into models/" : "";
    fail_value(value, key,
               fmt::format("there is no `{}`, neither beside the plan nor in the current "
                           "folder{}",
                           value.text(), hint));
  }
}

// A run's folder is called so by default, and its run_id starts with it.
void check_name(const Value& name) {
  constexpr size_t kMaxBytes = 100;
  const std::string& text = name.text();
  const auto is_bad = [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '/'; };
  if (text.front() != '.' && text.size() <= kMaxBytes && is_utf8(text) &&
      std::none_of(text.begin(), text.end(), is_bad)) {
    return;
  }
  std::string shown = text;
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  fail_value(
      name, "name",
      fmt::format("`{}` names no folder; expected letters, digits, `-` and the like, without "
                  "`/` and control characters, not starting with a dot, {} bytes at most",
                  shown, kMaxBytes));
}

// Scoring and gates that could never be decided are mistakes, not silence.
void check_scoring(const Values& values) {
  const Value* text = first_given(values, "score.text");
  for (const char* key : {"score.positions", "score.chunk"}) {
    if (const Value* value = first_given(values, key); value != nullptr && text == nullptr) {
      fail_value(*value, key, "there is no score.text whose tokens could be scored");
    }
  }
  if (text != nullptr && values.count("model.file") == 0) {
    fail_value(*text, "score.text",
               "scoring needs trained weights (model.file): seeded ones say nothing about text");
  }
  for (const auto& [key, bound] : values) {
    if (key.rfind("loss_gates.", 0) != 0) continue;
    const size_t dot = key.rfind('.');
    const std::string codec = key.substr(11, dot - 11), name = key.substr(dot + 1);
    try {
      parse_engine("contiguous/" + codec);
    } catch (const UsageError& e) {
      fail_value(bound.front(), "loss_gates." + codec, e.what());
    }
    if (name != "attend_rel_rms_max" && text == nullptr) {
      fail_value(bound.front(), key,
                 "this loss is known only where a text is scored; set score.text");
    }
  }
}

// The axes of groups, in the table's order; engines differ within a group.
std::vector<const Field*> axes_of(const Values& values) {
  std::vector<const Field*> axes;
  for (const Field& field : fields()) {
    if (field.several && field.key != "engines" && values.count(field.key)) axes.push_back(&field);
  }
  return axes;
}

// Builds the cases of one choice.
class GroupBuilder {
 public:
  GroupBuilder(const Values& values, ModelShapes& shapes) : values_(values), shapes_(shapes) {}

  Group build(const Choice& choice) {
    choice_ = &choice;
    Case c;
    shapes_.build(choice, c);
    set_workload(c);
    set_lengths(c);
    set_counting(c);
    set_layers(c);
    set_score(c);
    set_capacity(c);
    check_size(c);
    Group group;
    for (const Value& engine : values_.at("engines")) group.cases.push_back(with_engine(c, engine));
    return group;
  }

 private:
  const Value* find(const std::string& key) const { return find_value(*choice_, key); }
  const Value& at(const std::string& key) const { return *choice_->at(key); }

  void set_workload(Case& c) const {
    c.device = at("devices").text();
    c.threads = at("threads").integer();
    c.pin = at("pin").boolean();
    c.level = at("workload.level").text() == "model" ? Level::model : Level::attention;
    c.batch = at("workload.batch").integer();
    c.seed = at("workload.seed").seed();
    const Value& tokens = at("workload.tokens");
    c.tokens = tokens.text() == "greedy" ? TokenMode::greedy : TokenMode::forced;
    if (c.tokens == TokenMode::greedy && c.level == Level::attention) {
      fail_value(tokens, "workload.tokens", "at attention level there are no tokens");
    }
    c.pool_order =
        at("workload.pool_order").text() == "shuffled" ? PoolOrder::shuffled : PoolOrder::fresh;
    c.repeat_kv = at("workload.repeat_kv").boolean();
  }

  void set_lengths(Case& c) const {
    const Value* prompt = find("workload.prompt_len");
    const Value* gen = find("workload.gen_len");
    if (prompt != nullptr) c.prompt_len = prompt->integer();
    if (gen != nullptr) c.gen_len = gen->integer();
    if (const Value* seq = find("workload.seq_len")) {
      if (gen == nullptr) {
        c.gen_len = seq->integer() - c.prompt_len;
      } else {
        c.prompt_len = seq->integer() - c.gen_len;
      }
      if (c.prompt_len < 0 || c.gen_len < 1) {
        fail_value(
            *seq, "workload.seq_len",
            gen == nullptr
                ? fmt::format("{} leaves no token to generate after prompt_len {}", seq->integer(),
                              c.prompt_len)
                : fmt::format("{} is shorter than gen_len {}; seq_len = prompt_len + gen_len",
                              seq->integer(), c.gen_len));
      }
    }
    if (c.level == Level::attention && c.gen_len < 2) {
      fail_value(
          gen != nullptr ? *gen : at("workload.seq_len"), "workload.gen_len",
          "at attention level a run needs at least 2: the first token belongs to the context "
          "that is filled, the others are measured");
    }
  }

  void set_counting(Case& c) const {
    if (find("count") == nullptr) return;
    c.count = Counting::callgrind;
    if (c.threads != 1) {
      fail_value(at("threads"), "threads",
                 "a count needs 1 thread: several would count how long they wait for each other");
    }
    if (c.gen_len < 2) {
      std::string key;
      const Value& value = length_value(key);
      fail_value(value, key,
                 "a count needs at least 2 tokens to generate: the steps between them "
                 "are what is counted");
    }
  }

  // `layers: auto`: the fewest whose rows of the filled context take up the working set in f16. Not
  // in the engine's own format: a group has one workload.
  void set_layers(Case& c) const {
    const Value* layers = find("model.layers");
    const Value* working_set = find("workload.working_set_gib");
    if (layers == nullptr || !layers->is_word()) {
      if (working_set == nullptr) return;
      fail_value(*working_set, "workload.working_set_gib",
                 "it picks the number of layers where that is `auto`; set model.layers: auto, or "
                 "leave this out");
    }
    if (working_set == nullptr) {
      fail_value(*layers, "model.layers",
                 "`auto` picks the number that gives workload.working_set_gib; set that too, or "
                 "give a number");
    }
    if (c.level == Level::model) {
      fail_value(*layers, "model.layers",
                 "`auto` is for workload.level: attention, where any number of layers will do; a "
                 "model has its own");
    }
    const double heads = c.repeat_kv ? c.model.heads : c.model.kv_heads;
    const double layer_bytes = 2 * 2 * heads * c.model.head_dim * c.first_rows() * c.batch;
    const double wanted = std::ceil(working_set->number() * kGib / layer_bytes);
    if (wanted > kMaxAutoLayers) {
      fail_value(*working_set, "workload.working_set_gib",
                 fmt::format("{} GiB would be {:.0f} layers of {:.0f} bytes, at most {:.0f} are "
                             "sensible; take a longer prompt_len, a larger batch or a smaller "
                             "working set",
                             working_set->number(), wanted, layer_bytes, kMaxAutoLayers));
    }
    c.model.layers = static_cast<int>(wanted);
  }

  void set_score(Case& c) const {
    const auto text = values_.find("score.text");
    if (text == values_.end() || c.level == Level::attention) return;
    c.score.text = text->second.front().text();
    c.score.positions = values_.at("score.positions").front().integer();
    c.score.chunk = values_.at("score.chunk").front().integer();
    if (c.score.positions > c.model.context) {
      fail_value(values_.at("score.positions").front(), "score.positions",
                 fmt::format("{} are more than the context of {}: {}", c.score.positions,
                             c.model.name, c.model.context));
    }
    const int tokens = shapes_.text_tokens(text->second.front(), c.source.name);
    if (tokens <= c.score.positions) {
      fail_value(text->second.front(), "score.text",
                 fmt::format("{} has {} tokens with the vocabulary of {}; score.positions {} need "
                             "{}, as each has a next one: take a longer text or fewer positions",
                             c.score.text, tokens, c.model.name, c.score.positions,
                             c.score.positions + 1));
    }
  }

  // The value that makes a run long, for errors.
  const Value& length_value(std::string& key) const {
    for (const char* name : {"workload.seq_len", "workload.gen_len", "workload.prompt_len"}) {
      key = name;
      if (const Value* value = find(key); value != nullptr && value->given) return *value;
    }
    return at(key = "workload.level");
  }

  void set_capacity(Case& c) const {
    const int needed = std::max(c.committed(), c.score.positions);
    const bool limited = c.level == Level::model;
    if (limited && c.committed() > c.model.context) {
      std::string key;
      const Value& value = length_value(key);
      fail_value(value, key,
                 fmt::format("prompt_len {} and gen_len {} need {} positions, the context of {} is "
                             "{}; shorten the run{}",
                             c.prompt_len, c.gen_len, needed, c.model.name, c.model.context,
                             c.source.real() ? "" : " or set model.context"));
    }
    const Value* given = find("workload.max_seq_len");
    if (given != nullptr) {
      c.max_seq_len = given->integer();
    } else {
      c.max_seq_len =
          limited ? c.model.context
                  : (needed + kAttentionRounding - 1) / kAttentionRounding * kAttentionRounding;
    }
    if (c.max_seq_len < needed) {
      fail_value(*given, "workload.max_seq_len",
                 fmt::format("{} is too small: prompt_len {} and gen_len {}{} need {}",
                             c.max_seq_len, c.prompt_len, c.gen_len,
                             c.score.positions > c.committed()
                                 ? fmt::format(" and {} scored positions", c.score.positions)
                                 : "",
                             needed));
    }
  }

  // Before any formula in integers sees the sizes.
  void check_size(const Case& c) const {
    const ModelConfig& m = c.model;
    const double heads = c.repeat_kv ? m.heads : m.kv_heads;
    const double cache = 8.0 * m.layers * heads * m.head_dim * c.max_seq_len * c.batch;
    const double rows = double(c.batch) * c.committed();
    const double widest =
        std::max({double(m.ffn), double(m.heads) * m.head_dim, double(m.d_model)});
    const double weights = c.level == Level::attention ? 0.0 : 4.0 * double(parameter_count(m));
    if (cache + weights + 4 * rows * widest > kMaxBytes || rows > (1 << 30)) {
      std::string key;
      const Value& value = length_value(key);
      fail_value(
          value, key,
          fmt::format("{} × {} positions of {} ({} layers, {} KV heads of {}) with its weights "
                      "take about {:.0f} TiB; no machine holds that",
                      c.batch, c.max_seq_len, m.name, m.layers, heads, m.head_dim,
                      std::ceil((cache + weights + 4 * rows * widest) / (kMaxBytes / 16))));
    }
  }

  Case with_engine(Case c, const Value& engine) const {
    c.engine = parse_engine(engine.text());
    c.preset = preset_of(c.engine);
    c.gate = gate_of(c.engine, c);
    if (const auto refusal = check_engine(c.engine, kv_spec_of(c))) {
      fail_value(engine, "engines",
                 fmt::format("{} (for {}, {} KV heads of {})", refusal->reason, c.model.name,
                             c.repeat_kv ? c.model.heads : c.model.kv_heads, c.model.head_dim));
    }
    return c;
  }

  // The bounds that this case can decide: where nothing is scored (attention level) only the
  // attention's own.
  LossGate gate_of(const EngineSpec& engine, const Case& c) const {
    const bool scored = !c.score.text.empty();
    LossGate gate;
    for (const auto& [key, bound] : values_) {
      if (key.rfind("loss_gates.", 0) != 0) continue;
      const size_t dot = key.rfind('.');
      const EngineSpec gated = parse_engine("contiguous/" + key.substr(11, dot - 11));
      if (gated.k_codec != engine.k_codec || gated.v_codec != engine.v_codec) continue;
      const std::string name = key.substr(dot + 1);
      const double limit = bound.front().number();
      if (name == "attend_rel_rms_max") {
        if (c.tokens == TokenMode::greedy) {
          fail_value(bound.front(), key,
                     "under workload.tokens: greedy each engine goes on with its own tokens, so "
                     "that attention outputs cannot be compared; leave this gate out, or take "
                     "forced tokens");
        }
        gate.attend_rel_rms_max = limit;
      }
      if (name == "kld_mean_max" && scored) gate.kld_mean_max = limit;
      if (name == "top1_min" && scored) gate.top1_min = limit;
    }
    return gate;
  }

  const Values& values_;
  ModelShapes& shapes_;
  const Choice* choice_ = nullptr;
};

// Moves to the next combination, the last axis fastest; false after the last one.
bool advance(std::vector<size_t>& index, const std::vector<const Field*>& axes,
             const Values& values) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++index[i] < values.at(axes[i]->key).size()) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace

void complete_values(Values& values, const std::string& path) {
  complete_source(values, path);
  complete_lengths(values);
  complete_counting(values, path);
  resolve_paths(values, "model.file", path);
  resolve_paths(values, "model.dir", path);
  resolve_paths(values, "score.text", path);
  check_scoring(values);
  if (values.count("threads") == 0) values["threads"] = {derived(int64_t{cores_available()}, path)};
  if (values.count("name") == 0) {
    values["name"] = {derived(std::filesystem::path(path).stem().string(), path)};
  }
  check_name(values.at("name").front());
}

std::vector<Group> expand(const Values& values) {
  const std::vector<const Field*> axes = axes_of(values);
  size_t cases = values.at("engines").size();
  for (const Field* axis : axes) {
    const std::vector<Value>& bound = values.at(axis->key);
    if (bound.size() > kMaxCases / cases) {
      fail_value(bound.front(), axis->key,
                 fmt::format("the axes make more than {} cases; take fewer values", kMaxCases));
    }
    cases *= bound.size();
  }

  ModelShapes shapes;
  GroupBuilder builder(values, shapes);
  std::vector<Group> groups;
  std::vector<size_t> index(axes.size(), 0);
  do {
    Choice choice;
    for (size_t i = 0; i < axes.size(); ++i)
      choice[axes[i]->key] = &values.at(axes[i]->key)[index[i]];
    for (const auto& [key, bound] : values) {
      if (const Field* field = find_field(key); !field->several) choice[key] = &bound.front();
    }
    groups.push_back(builder.build(choice));
  } while (advance(index, axes, values));
  return groups;
}

}  // namespace kvmark
