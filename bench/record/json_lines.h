// Files with a JSON object a line that survive a crash in mid-write.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

// Appends one line and syncs it to disk; creates the file and its folder where missing. A torn last
// line (a write that was cut off: it has no line end) is removed first; a whole object that only
// lacks its line end gets one. One writer at a time. Throws RuntimeError naming the file, also for
// a last line that has its line end and is no object.
void append_json_line(const std::string& path, const nlohmann::ordered_json& object);

struct JsonLines {
  std::vector<nlohmann::ordered_json> lines;
  std::optional<std::string> torn;  // what was found at the end, "FILE:LINE: …", for a warning
};

// Reads such a file; `what` is a line, "record". A last line that was cut off is left out and
// reported; any other line that is no object (or nests deeper than a record can), an object in
// which `problem_of` finds something wrong, a missing file or a folder throws UsageError naming
// file:line. An empty file holds no lines.
JsonLines read_json_lines(
    const std::string& path, std::string_view what,
    const std::function<std::string(const nlohmann::ordered_json&)>& problem_of);

}  // namespace kvmark
