#include "bench/plan/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "bench/plan/fields.h"
#include "bench/record/metric_name.h"
#include "engines/catalog/engine_spec.h"
#include "engines/core/check.h"
#include "engines/core/nearest.h"
#include "engines/core/split.h"

namespace kvmark {
namespace {

std::string joined(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

// --- keys ---------------------------------------------------------------------------------------

// Where a name that is wrong here would be right, "" for nowhere.
std::string elsewhere(const std::string& name) {
  for (const Field& f : fields()) {
    if (f.key.size() > name.size() && f.key.find('*') == std::string::npos &&
        f.key.substr(f.key.size() - name.size() - 1) == "." + name) {
      return f.key;
    }
  }
  return "";
}

[[noreturn]] void fail_unknown(const Key& key, const std::string& section) {
  const std::vector<std::string> names = names_under(section);
  std::string hint = did_you_mean(key.name, names);
  if (hint.empty()) {
    if (const std::string other = elsewhere(key.name); !other.empty()) {
      hint = fmt::format(" (did you mean `{}`?)", other);
    }
  }
  const std::string in = section.empty() ? "" : fmt::format(" in `{}`", section);
  fail_at(key.where, fmt::format("unknown key `{}`{}{}; expected one of: {}", key.name, in, hint,
                                 fmt::join(names, ", ")));
}

void check_metric(const Key& key) {
  try {
    parse_metric(key.name);
  } catch (const UsageError& e) {
    fail_at(key.where, e.what());
  }
}

void check_section(const Node& map, const std::string& section) {
  for (const Node& node : map.fields) {
    const std::string full = joined(section, node.key.name);
    if (section == "thresholds") check_metric(node.key);
    if (find_field(full) != nullptr) continue;
    if (!is_section(full)) fail_unknown(node.key, section);
    if (node.kind != Node::Kind::map) {
      fail_at(node.where, fmt::format("`{}` is a section; expected keys under it, such as `{}`",
                                      full, joined(full, names_under(full).front())));
    }
    check_section(node, full);
  }
}

// --- values -------------------------------------------------------------------------------------

// A whole number as YAML and JSON both write it; nothing where it is none.
std::optional<int64_t> whole_number(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_digits(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// In the C locale's form whatever the locale; finite.
std::optional<double> real_number(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// YAML 1.1 reads 010 as eight, YAML 1.2 as ten: nobody should have to know.
bool looks_octal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      return node.quoted ? fmt::format("the text \"{}\"", node.text)
                         : fmt::format("`{}`", node.text);
  }
  return "";
}

// Binds what stands at one key.
class FieldBinder {
 public:
  FieldBinder(const Field& field, const std::string& key) : field_(field), key_(key) {}

  std::vector<Value> bind(const Node& node) const {
    std::vector<Value> values;
    if (node.kind == Node::Kind::list) {
      if (!field_.several) fail_type(node);
      if (node.items.empty()) fail(node, "the list is empty; give at least one value");
      for (const Node& item : node.items) bind_item(item, values);
    } else {
      bind_item(node, values);
    }
    check_distinct(values);
    return values;
  }

 private:
  [[noreturn]] void fail(const Node& node, const std::string& text) const {
    fail_at(node.where, node.flag ? text : fmt::format("{}: {}", key_, text));
  }
  [[noreturn]] void fail_type(const Node& node) const {
    fail(node, fmt::format("expected {}, got {}", expected_words(field_), describe(node)));
  }

  void bind_item(const Node& node, std::vector<Value>& values) const {
    if (node.kind != Node::Kind::scalar) fail_type(node);
    switch (field_.type) {
      case FieldType::integer:
        return bind_integer(node, values);
      case FieldType::number:
        return add(values, node, bind_number(node));
      case FieldType::boolean:
        return add(values, node, bind_boolean(node));
      case FieldType::heads:
        return add(values, node, bind_heads(node));
      case FieldType::engine:
        return add(values, node, bind_engine(node));
      case FieldType::text:
        return add(values, node, bind_text(node));
    }
  }

  template <typename T>
  void add(std::vector<Value>& values, const Node& node, T data) const {
    values.push_back({std::move(data), node.where, node.flag, true});
  }

  void check_octal(const Node& node) const {
    if (!node.quoted && looks_octal(node.text)) {
      fail(node, fmt::format("`{}` has a leading zero; write it without (it is not read as octal)",
                             node.text));
    }
  }

  [[noreturn]] void fail_range(const Node& node) const {
    fail(node, fmt::format("{} is out of range; expected {}", node.text, expected_words(field_)));
  }
  void check_bounds(const Node& node, double value) const {
    if (value < field_.min || value > field_.max) fail_range(node);
  }
  // As whole numbers: 2^53 + 1 is no double.
  void check_bounds(const Node& node, int64_t value) const {
    if (value < static_cast<int64_t>(field_.min) || value > static_cast<int64_t>(field_.max)) {
      fail_range(node);
    }
  }

  void bind_integer(const Node& node, std::vector<Value>& values) const {
    if (is_choice(node.text)) return add(values, node, node.text);
    check_octal(node);
    const std::optional<int64_t> value = node.quoted ? std::nullopt : whole_number(node.text);
    if (value) {
      check_bounds(node, *value);
      return add(values, node, *value);
    }
    // Digits that are no int64.
    if (!node.quoted && is_digits(node.text)) fail_range(node);
    // The characters of a range: what else stands there is no failed attempt at one.
    const bool range = field_.several && node.text.find_first_of("0123456789") == 0 &&
                       node.text.find_first_not_of("0123456789,-+* ") == std::string::npos;
    if (!range) fail_type(node);
    for (int64_t v : range_of(node)) {
      check_bounds(node, v);
      add(values, node, v);
    }
  }

  std::vector<int> range_of(const Node& node) const {
    try {
      return parse_range(node.text);
    } catch (const UsageError& e) {
      fail(node, e.what());
    }
  }

  double bind_number(const Node& node) const {
    check_octal(node);
    const std::optional<double> value = node.quoted ? std::nullopt : real_number(node.text);
    if (!value) fail_type(node);
    check_bounds(node, *value);
    return *value;
  }

  bool bind_boolean(const Node& node) const {
    if (node.quoted || (node.text != "true" && node.text != "false")) fail_type(node);
    return node.text == "true";
  }

  std::string bind_heads(const Node& node) const {
    const size_t colon = node.text.find(':');
    for (const std::string_view part :
         {std::string_view(node.text).substr(0, colon),
          colon == std::string::npos ? "1" : std::string_view(node.text).substr(colon + 1)}) {
      if (looks_octal(part)) {
        fail(node, fmt::format("`{}` has a leading zero; write it without", node.text));
      }
      const std::optional<int64_t> count = whole_number(part);
      if (!count || *count < 1 || *count > 1024) fail_type(node);
    }
    return node.text;
  }

  std::string bind_engine(const Node& node) const {
    try {
      return parse_engine(node.text).name();
    } catch (const UsageError& e) {
      const bool cut = node.text.rfind("v=", 0) == 0 || node.text.rfind("k=", 0) == 0;
      fail(node, fmt::format("{}{}", e.what(),
                             cut ? "; a name with a comma in it stands in quotes" : ""));
    }
  }

  std::string bind_text(const Node& node) const {
    if (node.text.empty()) fail(node, fmt::format("is empty; expected {}", expected_words(field_)));
    if (!field_.choices.empty() && !is_choice(node.text)) {
      fail(node, fmt::format("`{}` is not known{}; expected {}", node.text,
                             did_you_mean(node.text, field_.choices), expected_words(field_)));
    }
    return node.text;
  }

  bool is_choice(const std::string& text) const {
    const auto& choices = field_.choices;
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  }

  // The same value twice would give the same case twice.
  void check_distinct(const std::vector<Value>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (values[i].data != values[j].data) continue;
        const std::string text =
            std::visit([](const auto& v) { return fmt::format("{}", v); }, values[i].data);
        fail_at(values[i].where, fmt::format("{}{} stands here a second time",
                                             values[i].flag ? "" : key_ + ": ", text));
      }
    }
  }

  const Field& field_;
  const std::string& key_;
};

void bind_section(const Node& map, const std::string& section, Values& values) {
  for (const Node& node : map.fields) {
    const std::string full = joined(section, node.key.name);
    if (const Field* field = find_field(full)) {
      values[full] = FieldBinder(*field, full).bind(node);
    } else {
      bind_section(node, full, values);
    }
  }
}

// "a,k=f16,v=int8:g32,b": the comma between k= and v= belongs to a name.
std::vector<std::string> split_engines(std::string_view text) {
  std::vector<std::string> names;
  for (std::string& part : split(text, ',')) {
    const bool second =
        !names.empty() &&
        ((part.rfind("v=", 0) == 0 && names.back().find("k=") != std::string::npos) ||
         (part.rfind("k=", 0) == 0 && names.back().find("v=") != std::string::npos));
    if (second) {
      names.back().append(",").append(part);
    } else {
      names.push_back(std::move(part));
    }
  }
  return names;
}

Node scalar(std::string text, const std::string& where, bool flag) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.where = where;
  node.flag = flag;
  node.text = std::move(text);
  return node;
}

// A value as a flag or a default of the table writes it.
Node from_text(const Field& field, const std::string& text, const std::string& where, bool flag) {
  if (!field.several) return scalar(text, where, flag);
  Node list;
  list.kind = Node::Kind::list;
  list.where = where;
  list.flag = flag;
  for (std::string& part :
       field.type == FieldType::engine ? split_engines(text) : split(text, ',')) {
    list.items.push_back(scalar(std::move(part), where, flag));
  }
  return list;
}

// The map that holds `key`, made where it is missing.
Node& section_of(Node& root, std::string_view key, std::string& name) {
  std::vector<std::string> names = split_key(key);
  name = std::move(names.back());
  names.pop_back();
  Node* map = &root;
  for (const std::string& section : names) {
    if (map->find(section) == nullptr) {
      Node made;
      made.kind = Node::Kind::map;
      made.where = root.where;
      map->set(section, std::move(made));
    }
    map = map->find(section);
  }
  return *map;
}

void set_field(Node& root, const std::string& key, Node value) {
  std::string name;
  Node& map = section_of(root, key, name);
  map.set(name, std::move(value));
}

const Node* get_field(Node& root, const std::string& key) {
  std::string name;
  return section_of(root, key, name).find(name);
}

void erase_field(Node& root, const std::string& key) {
  std::string name;
  section_of(root, key, name).erase(name);
}

const Field& field_of(const Override& o) {
  if (const Field* field = find_field(o.key)) return *field;
  std::string flag = "--" + o.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  std::vector<std::string> keys;
  for (const Field& f : fields()) {
    if (f.flag == flag) return f;
    keys.push_back(f.key);
  }
  if (is_section(o.key)) {
    fail_at(o.flag, fmt::format("`{}` is a section; set one of its keys, such as `{}`", o.key,
                                joined(o.key, names_under(o.key).front())));
  }
  std::string hint = did_you_mean(o.key, keys);
  if (const std::string other = elsewhere(o.key); hint.empty() && !other.empty()) {
    hint = fmt::format(" (did you mean `{}`?)", other);
  }
  fail_at(o.flag, fmt::format("unknown key `{}`{}", o.key, hint));
}

// Which of model.preset, model.file and model.dir `--model` means.
std::string model_kind(const Override& o) {
  std::error_code error;
  const std::filesystem::path path(o.text);
  if (std::filesystem::is_directory(path, error)) return "dir";
  if (std::filesystem::exists(path, error) || path.extension() == ".gguf") return "file";
  if (o.text.find('/') == std::string::npos) return "preset";
  fail_at(o.flag, fmt::format("there is no file or folder `{}`; a preset is one of: {}", o.text,
                              fmt::join(find_field("model.preset")->choices, ", ")));
}

bool by_flag(Node& root, const std::string& key) {
  const Node* node = get_field(root, key);
  return node != nullptr && node->flag;
}

void make_room_for_lengths(Node& root) {
  const bool prompt = by_flag(root, "workload.prompt_len"), gen = by_flag(root, "workload.gen_len"),
             seq = by_flag(root, "workload.seq_len");
  if (seq && !prompt) erase_field(root, "workload.prompt_len");
  if (seq && prompt && !gen) erase_field(root, "workload.gen_len");
  if (!seq && prompt) erase_field(root, "workload.seq_len");
  if (!seq && gen && get_field(root, "workload.prompt_len")) erase_field(root, "workload.seq_len");
}

// A number of layers given by flag needs no working set that would pick it.
void make_room_for_layers(Node& root) {
  const Node* layers = get_field(root, "model.layers");
  if (layers == nullptr || !layers->flag || layers->items.front().text == "auto") return;
  if (!by_flag(root, "workload.working_set_gib")) erase_field(root, "workload.working_set_gib");
}

}  // namespace

void check_keys(const Node& root) { check_section(root, ""); }

void apply_overrides(Node& root, const std::vector<Override>& overrides) {
  for (const bool model : {true, false}) {
    for (const Override& o : overrides) {
      if ((o.key == "model") != model) continue;
      if (model) {
        for (const char* key : {"model.preset", "model.file", "model.dir"}) erase_field(root, key);
        set_field(root, "model." + model_kind(o), scalar(o.text, o.flag, true));
        continue;
      }
      const Field& field = field_of(o);
      const std::string key = field.key.find('*') == std::string::npos ? field.key : o.key;
      const std::string where = o.flag == "--set" ? fmt::format("--set {}", o.key) : o.flag;
      set_field(root, key, from_text(field, o.text, where, true));
    }
  }
  make_room_for_lengths(root);
  make_room_for_layers(root);
}

Values bind_values(const Node& root, const std::string& path) {
  Values values;
  bind_section(root, "", values);
  for (const Field& field : fields()) {
    if (field.fallback.empty() || values.count(field.key)) continue;
    std::vector<Value> bound =
        FieldBinder(field, field.key).bind(from_text(field, field.fallback, path, false));
    for (Value& value : bound) value.given = false;
    values[field.key] = std::move(bound);
  }
  return values;
}

}  // namespace kvmark
