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

// Appends one line and syncs it to disk; creates the file and its folder where missing. A torn last
// line (a write that was cut off) is removed first; a whole record that only lacks its line end
// gets one. One writer at a time. Throws RuntimeError naming the file.
void append_record(const std::string& path, const nlohmann::ordered_json& record);

struct RecordFile {
  std::vector<nlohmann::ordered_json> records;
  std::optional<std::string> torn;  // what was found at the end, "FILE:LINE: …", for a warning
};

// Reads a file of records. A last line that was cut off is left out and reported; damage anywhere
// else, a row that is none of kRecordSchema (schema, status, case_id and case are looked at), a
// missing file or a folder throws UsageError naming file:line. An empty file holds no records.
RecordFile read_records(const std::string& path);

}  // namespace kvmark
