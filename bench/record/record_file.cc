// Files of records.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/record/json_lines.h"
#include "bench/record/record.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Why an object is no row that can be told apart and counted, "" where it is one.
std::string foreign(const Json& record) {
  const auto text = [&](const char* key) {
    const auto it = record.find(key);
    return it != record.end() && it->is_string() ? it->get<std::string>() : "";
  };
  const auto found = [&](const char* key) {
    return record.contains(key) ? record[key].dump(-1, ' ', false, Json::error_handler_t::replace)
                                : "none";
  };
  if (text("schema") != kRecordSchema) {
    return fmt::format("schema: expected \"{}\", found {}", kRecordSchema, found("schema"));
  }
  constexpr const char* kStatuses[] = {"ok", "skipped", "failed", "invalid"};
  if (std::find(std::begin(kStatuses), std::end(kStatuses), text("status")) ==
      std::end(kStatuses)) {
    return fmt::format("status: expected one of {}, found {}", fmt::join(kStatuses, ", "),
                       found("status"));
  }
  if (text("case_id").empty()) {
    return fmt::format("case_id: expected a text, found {}", found("case_id"));
  }
  if (!record.contains("case") || !record["case"].is_object()) {
    return fmt::format("case: expected an object, found {}", found("case"));
  }
  return "";
}

}  // namespace

void append_record(const std::string& path, const Json& record) { append_json_line(path, record); }

RecordFile read_records(const std::string& path) {
  JsonLines file = read_json_lines(path, fmt::format("record of {}", kRecordSchema), foreign);
  return {std::move(file.lines), std::move(file.torn)};
}

}  // namespace kvmark
