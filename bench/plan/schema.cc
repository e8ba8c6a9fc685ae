// The JSON Schema and the reference of plans, from the field table.
#include <fmt/format.h>

#include "bench/plan/fields.h"
#include "bench/plan/plan.h"
#include "engines/catalog/engine_spec.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRangePattern = "^[0-9]+(-[0-9]+[*+][0-9]+)?(,[0-9]+(-[0-9]+[*+][0-9]+)?)*$";
constexpr const char* kHeadsPattern = "^[1-9][0-9]*(:[1-9][0-9]*)?$";

Json bounded(const char* type, const Field& f) {
  Json json{{"type", type}};
  const auto bound = [&](double value) {
    return f.type == FieldType::integer ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  json["minimum"] = bound(f.min);
  json["maximum"] = bound(f.max);
  return json;
}

// One value of a field.
Json value_schema(const Field& f) {
  switch (f.type) {
    case FieldType::text:
      return f.choices.empty() ? Json{{"type", "string"}, {"minLength", 1}}
                               : Json{{"enum", f.choices}};
    case FieldType::integer: {
      if (!f.several) return bounded("integer", f);
      Json any = {bounded("integer", f), Json{{"type", "string"}, {"pattern", kRangePattern}}};
      if (!f.choices.empty()) any.push_back({{"enum", f.choices}});
      return {{"anyOf", any}};
    }
    case FieldType::number:
      return bounded("number", f);
    case FieldType::boolean:
      return {{"type", "boolean"}};
    case FieldType::heads:
      return {{"anyOf",
               {Json{{"type", "integer"}, {"minimum", 1}, {"maximum", 1024}},
                Json{{"type", "string"}, {"pattern", kHeadsPattern}}}}};
    case FieldType::engine:
      return {{"type", "string"}, {"minLength", 1}, {"examples", preset_names()}};
  }
  return {};
}

// The default as JSON: what the field table writes as text.
Json default_json(const Field& f) {
  if (f.type == FieldType::engine) return preset_names();
  if (f.type == FieldType::text || f.type == FieldType::heads) return f.fallback;
  return Json::parse(f.fallback);
}

Json field_schema(const Field& f) {
  Json json;
  const Json one = value_schema(f);
  if (f.several) {
    const Json list{{"type", "array"}, {"items", one}, {"minItems", 1}, {"uniqueItems", true}};
    json["anyOf"] = {one, list};
  } else {
    json = one;
  }
  json["description"] = f.doc;
  if (!f.fallback.empty()) json["default"] = default_json(f);
  return json;
}

Json section_schema(const std::string& section) {
  Json properties = Json::object();
  Json others = false;
  for (const std::string& name : names_under(section)) {
    const std::string key = section.empty() ? name : section + "." + name;
    const Field* field = find_field(key);
    Json schema = field != nullptr ? field_schema(*field) : section_schema(key);
    if (name == "*") {
      others = std::move(schema);
    } else {
      properties[name] = std::move(schema);
    }
  }
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", others}};
}

std::string type_words(const Field& f) {
  std::string words;
  switch (f.type) {
    case FieldType::text:
      if (f.choices.empty()) {
        words = "text";
      } else {
        words = fmt::format("`{}`", fmt::join(f.choices, "`, `"));
      }
      break;
    case FieldType::integer:
      words = fmt::format("whole, {:.0f} to {:.0f}", f.min, f.max);
      if (!f.choices.empty()) words += fmt::format(", `{}`", fmt::join(f.choices, "`, `"));
      break;
    case FieldType::number:
      words = fmt::format("number, {} to {}", f.min, f.max);
      break;
    case FieldType::boolean:
      words = "`true`, `false`";
      break;
    case FieldType::heads:
      words = "`q:kv` or `q`";
      break;
    case FieldType::engine:
      words = "engine";
      break;
  }
  return f.several ? words + "; several" : words;
}

std::string default_words(const Field& f) {
  if (f.fallback.empty()) return f.fallback_words.empty() ? "–" : f.fallback_words;
  std::string words;
  for (const char c : f.fallback) {
    words += c;
    if (c == ',') words += ' ';
  }
  return fmt::format("`{}`", words);
}

}  // namespace

Json plan_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "A kvmark plan"},
              {"description",
               "What `kvmark run` measures. Generated from the table in "
               "bench/plan/fields.cc."}};
  schema.update(section_schema(""));
  return schema;
}

std::string plan_reference() {
  std::string text =
      "| key | takes | default | flag | meaning |\n"
      "|---|---|---|---|---|\n";
  for (const Field& f : fields()) {
    const std::string flag =
        f.key == "model.preset" || f.key == "model.file" || f.key == "model.dir" ? "`--model`"
        : f.flag.empty()                                                         ? ""
                         : fmt::format("`{}`", f.flag);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", f.key, type_words(f), default_words(f),
                        flag, f.doc);
  }
  return text;
}

}  // namespace kvmark
