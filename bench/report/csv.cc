#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/metrics.h"
#include "bench/report/format.h"
#include "bench/report/report.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  std::string heading;
  std::string path;
  int index = -1;  // of an interval's end; −1: the value itself
};

std::string heading(std::string_view path, std::string_view unit) {
  return unit.empty() ? std::string(path) : fmt::format("{} [{}]", path, unit);
}

void add_interval(std::vector<Column>& columns, const std::string& path, std::string_view unit) {
  columns.push_back({heading(path + ".low", unit), path, 0});
  columns.push_back({heading(path + ".high", unit), path, 1});
}

void add_field(std::vector<Column>& columns, const RecordField& field) {
  const std::string path(field.path);
  switch (field.type) {
    case RecordFieldType::numbers:
    case RecordFieldType::integers:
    case RecordFieldType::objects:
      return;  // lists behind the figures stay in the records
    case RecordFieldType::interval:
      return add_interval(columns, path, field.unit);
    case RecordFieldType::summary:
      for (std::string_view name : summary_parts()) {
        const std::string part = fmt::format("{}.{}", path, name);
        const bool count = name == "n" || name == "outliers";
        if (name == "p50_ci95") {
          add_interval(columns, part, field.unit);
        } else {
          columns.push_back({heading(part, count ? "" : field.unit), part});
        }
      }
      return;
    default:
      columns.push_back({heading(path, field.unit), path});
  }
}

std::vector<Column> columns_of_records(Records records) {
  std::vector<Column> columns;
  bool case_done = false;
  for (const RecordField& field : record_fields()) {
    // The further keys of the case stand behind its last field.
    if (field.path.starts_with("sampling.") && !case_done) {
      for (const std::string& key : further_case_keys(records)) {
        const std::string path = fmt::format("case.{}", key);
        columns.push_back({path, path});
      }
      case_done = true;
    }
    add_field(columns, field);
  }
  return columns;
}

std::string joined(const Json& list) {
  std::string out;
  for (const Json& item : list) {
    if (!out.empty()) out += "; ";
    out += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return out;
}

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return joined(value);
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string csv(Records records) {
  const std::vector<Column> columns = columns_of_records(records);
  std::string out;
  const auto add_cell = [&](size_t column, const std::string& text) {
    out += quoted(text);
    out += column + 1 < columns.size() ? ',' : '\n';
  };
  for (size_t i = 0; i < columns.size(); ++i) add_cell(i, columns[i].heading);
  for (const Json& record : records) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const Json& value = value_at(record, columns[i].path);
      const bool end_of_interval = columns[i].index >= 0 && value.is_array();
      add_cell(i, plain(end_of_interval ? value.at(columns[i].index) : value));
    }
  }
  return out;
}

}  // namespace kvmark
