// The record: what one case gave, one JSON object a line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kvmark {

inline constexpr const char* kRecordSchema = "kvmark/1";

// A record with every key of the table, all null but `schema`. Fill what is known; `case` takes the
// case's own JSON as it is.
nlohmann::ordered_json empty_record();

// JSON Schema (draft 2020-12) of a record, generated from the table; results/record-schema.json is
// this.
nlohmann::ordered_json record_schema();

// What is wrong with a record, each problem naming its path: missing and unknown keys, wrong types,
// values that are not allowed, NaN and infinities, a row that is not ok without a reason. Empty:
// the record is good. Only `case` may hold keys that the table does not know.
std::vector<std::string> validate_record(const nlohmann::ordered_json& record);

// As append_json_line().
void append_record(const std::string& path, const nlohmann::ordered_json& record);

struct RecordFile {
  std::vector<nlohmann::ordered_json> records;
  std::optional<std::string> torn;  // what was found at the end, "FILE:LINE: …", for a warning
};

// As read_json_lines(): a row that is none of kRecordSchema (schema, status, case_id and case are
// looked at) is damage too.
RecordFile read_records(const std::string& path);

}  // namespace kvmark
