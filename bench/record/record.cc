#include "bench/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/record/metrics.h"
#include "engines/core/check.h"
#include "engines/core/split.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpenObject = "case";  // the plan's own; it may hold further keys

// ---- The schema ----

Json type_schema(const char* type, bool nullable) {
  return nullable ? Json{{"type", {type, "null"}}} : Json{{"type", type}};
}

Json list_schema(const char* items, bool nullable) {
  Json schema = type_schema("array", nullable);
  schema["items"] = {{"type", items}};
  return schema;
}

Json field_schema(const RecordField& field) {
  const auto of_type = [&]() -> Json {
    switch (field.type) {
      case RecordFieldType::text:
        return type_schema("string", field.nullable);
      case RecordFieldType::integer:
        return type_schema("integer", field.nullable);
      case RecordFieldType::number:
        return type_schema("number", field.nullable);
      case RecordFieldType::boolean:
        return type_schema("boolean", field.nullable);
      case RecordFieldType::summary:
        return {{"anyOf", {{{"$ref", "#/$defs/summary"}}, {{"type", "null"}}}}};
      case RecordFieldType::interval:
        return {{"anyOf", {{{"$ref", "#/$defs/interval"}}, {{"type", "null"}}}}};
      case RecordFieldType::texts:
        return list_schema("string", field.nullable);
      case RecordFieldType::numbers:
        return list_schema("number", field.nullable);
      case RecordFieldType::integers:
        return list_schema("integer", field.nullable);
      case RecordFieldType::objects:
        return list_schema("object", field.nullable);
      case RecordFieldType::object:
        return type_schema("object", field.nullable);
    }
    throw LogicError(fmt::format("{}: a type without a schema", field.path));
  };
  Json schema = of_type();
  if (!field.values.empty()) {
    schema["enum"] = split(field.values, '|');
    if (field.nullable) schema["enum"].push_back(nullptr);
  }
  schema["description"] = field.unit.empty()
                              ? std::string(field.definition)
                              : fmt::format("{} Unit: {}.", field.definition, field.unit);
  return schema;
}

Json closed_object() {
  return {{"type", "object"},
          {"properties", Json::object()},
          {"required", Json::array()},
          {"additionalProperties", false}};
}

Json summary_schema() {
  Json schema = closed_object();
  for (std::string_view part : summary_parts()) {
    Json& property = schema["properties"][std::string(part)];
    if (part == "n" || part == "outliers") {
      property = {{"type", "integer"}, {"minimum", 0}};
    } else if (part == "p50_ci95") {
      property = {{"anyOf", {{{"$ref", "#/$defs/interval"}}, {{"type", "null"}}}}};
    } else {
      property = type_schema("number", true);
    }
    schema["required"].push_back(part);
  }
  return schema;
}

// ---- The check ----

using FieldMap = std::unordered_map<std::string, const RecordField*>;  // by path

struct Checker {
  FieldMap fields;   // leaves
  FieldMap parents;  // objects that hold fields; the value is any field within
  std::vector<std::string> problems;

  Checker() {
    for (const RecordField& field : record_fields()) {
      const std::string path(field.path);
      fields.emplace(path, &field);
      for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
        parents.emplace(path.substr(0, dot), &field);
      }
    }
  }

  template <typename... Args>
  void report(fmt::format_string<Args...> text, Args&&... args) {
    problems.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void wrong_type(const std::string& path, const char* expected, const Json& value) {
    report("{}: expected {}, got {}", path, expected, value.type_name());
  }

  // NaN and infinities anywhere below, lists and free objects included.
  void check_finite(const std::string& path, const Json& value) {
    if (value.is_number_float() && !std::isfinite(value.get<double>())) {
      report("{}: not a finite number; a missing figure is null", path);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        check_finite(fmt::format("{}[{}]", path, i), value[i]);
    } else if (value.is_object()) {
      for (const auto& [key, item] : value.items()) {
        check_finite(path.empty() ? key : path + "." + key, item);
      }
    }
  }

  void check_list(const std::string& path, const Json& value, const char* expected,
                  bool (Json::*right)() const noexcept) {
    if (!value.is_array()) return wrong_type(path, "a list", value);
    for (size_t i = 0; i < value.size(); ++i) {
      if (!(value[i].*right)())
        return wrong_type(fmt::format("{}[{}]", path, i), expected, value[i]);
    }
  }

  void check_interval(const std::string& path, const Json& value) {
    if (value.is_null()) return;
    if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number()) {
      report("{}: expected [low, high] or null", path);
    } else if (value[0].get<double>() > value[1].get<double>()) {
      report("{}: low is above high", path);
    }
  }

  void check_summary(const std::string& path, const Json& value) {
    if (!value.is_object()) return wrong_type(path, "a summary object", value);
    for (std::string_view name : summary_parts()) {
      const std::string part = fmt::format("{}.{}", path, name);
      const auto it = value.find(name);
      if (it == value.end()) {
        report("{}: missing", part);
      } else if (name == "n" || name == "outliers") {
        if (!it->is_number_unsigned() && !(it->is_number_integer() && it->get<int64_t>() >= 0)) {
          wrong_type(part, "a count", *it);
        }
      } else if (name == "p50_ci95") {
        check_interval(part, *it);
      } else if (!it->is_number() && !it->is_null()) {
        wrong_type(part, "a number or null", *it);
      }
    }
    for (const auto& [key, item] : value.items()) {
      const auto parts = summary_parts();
      if (std::find(parts.begin(), parts.end(), key) == parts.end()) {
        report("{}.{}: unknown key", path, key);
      }
    }
  }

  void check_field(const RecordField& field, const Json& value) {
    const std::string path(field.path);
    if (value.is_null()) {
      if (!field.nullable) report("{}: may not be null", path);
      return;
    }
    switch (field.type) {
      case RecordFieldType::text:
        if (!value.is_string()) return wrong_type(path, "text", value);
        break;
      case RecordFieldType::integer:
        if (!value.is_number_integer()) return wrong_type(path, "an integer", value);
        break;
      case RecordFieldType::number:
        if (!value.is_number()) return wrong_type(path, "a number", value);
        break;
      case RecordFieldType::boolean:
        if (!value.is_boolean()) return wrong_type(path, "true or false", value);
        break;
      case RecordFieldType::summary:
        return check_summary(path, value);
      case RecordFieldType::interval:
        return check_interval(path, value);
      case RecordFieldType::texts:
        return check_list(path, value, "text", &Json::is_string);
      case RecordFieldType::numbers:
        return check_list(path, value, "a number", &Json::is_number);
      case RecordFieldType::integers:
        return check_list(path, value, "an integer", &Json::is_number_integer);
      case RecordFieldType::objects:
        return check_list(path, value, "an object", &Json::is_object);
      case RecordFieldType::object:
        if (!value.is_object()) return wrong_type(path, "an object", value);
        break;
    }
    if (field.values.empty()) return;
    const auto allowed = split(field.values, '|');
    if (std::find(allowed.begin(), allowed.end(), value.get<std::string>()) == allowed.end()) {
      report("{}: \"{}\" is none of {}", path, value.get<std::string>(), field.values);
    }
  }

  void check_required(const Json& record) {
    for (const RecordField& field : record_fields()) {
      const Json* at = &record;
      for (const std::string& key : split(field.path, '.')) {
        if (!at->is_object()) break;  // reported as a wrong type
        const auto it = at->find(key);
        if (it == at->end()) {
          report("{}: missing", field.path);
          break;
        }
        at = &*it;
      }
    }
  }

  void check_object(const std::string& path, const Json& object) {
    if (!object.is_object()) return wrong_type(path.empty() ? "record" : path, "an object", object);
    for (const auto& [key, value] : object.items()) {
      const std::string below = path.empty() ? key : path + "." + key;
      if (const auto it = fields.find(below); it != fields.end()) {
        check_field(*it->second, value);
      } else if (parents.count(below) > 0) {
        check_object(below, value);
      } else if (path != kOpenObject) {
        report("{}: unknown key", below);
      }
    }
  }

  void check_reason(const Json& record) {
    if (!record.is_object() || !record.contains("status") || !record.contains("reason")) return;
    const bool ok = record["status"] == "ok";
    if (ok && !record["reason"].is_null()) report("reason: must be null where the status is ok");
    if (!ok && record["reason"].is_null()) report("reason: missing where the status is not ok");
  }
};

}  // namespace

Json empty_record() {
  Json record;
  for (const RecordField& field : record_fields()) {
    Json* at = &record;
    for (const std::string& key : split(field.path, '.')) at = &(*at)[key];
  }
  record["schema"] = kRecordSchema;
  return record;
}

Json record_schema() {
  Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "kvmark record: one line of records.jsonl";
  schema.update(closed_object());
  for (const RecordField& field : record_fields()) {
    Json* at = &schema;
    const std::vector<std::string> keys = split(field.path, '.');
    for (size_t i = 0; i < keys.size(); ++i) {
      Json& properties = (*at)["properties"];
      if (!properties.contains(keys[i])) {
        (*at)["required"].push_back(keys[i]);
        properties[keys[i]] = i + 1 < keys.size() ? closed_object() : field_schema(field);
      }
      at = &properties[keys[i]];
    }
  }
  schema["properties"][std::string(kOpenObject)]["additionalProperties"] = true;
  schema["$defs"]["interval"] = {
      {"type", "array"}, {"items", {{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}};
  schema["$defs"]["summary"] = summary_schema();
  return schema;
}

std::vector<std::string> validate_record(const Json& record) {
  Checker checker;
  checker.check_object("", record);
  checker.check_required(record);
  checker.check_reason(record);
  checker.check_finite("", record);
  return std::move(checker.problems);
}

}  // namespace kvmark
