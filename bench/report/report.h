// Records → what a person reads and what other tools read.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kvmark {

using Records = std::span<const nlohmann::ordered_json>;

// The comparison table, for a terminal: a group for each setting but engine and lengths, a row a
// record in the order of context and then of the records; a row without figures shows its reason,
// and one with figures that misses its gate has it below the rows. Below them, for each length, the
// seconds of a whole run, how they grow with the tokens, and their ratio to the baseline's; a ratio
// to a row of another `group_run` is marked. Rows at attention level with intervals are then put
// side by side, format by format (overview.h). Ends with the definitions of the columns. UTF-8, `—`
// for null. Records must be valid.
std::string table(Records records);

// The heading that each record has in the table; equal for the rows of one group.
std::vector<std::string> headings(Records records);

// The same as `table` in Markdown.
std::string markdown(Records records);

// One row a record, failed ones included; a column for every field that is not a list, its heading
// the path and, in brackets, the unit; a summary has a column a part. Quoted as RFC 4180 says,
// lines end with \n, null is an empty field, decimal points are points.
std::string csv(Records records);

// 1.5 KiB, 32 MiB: three significant digits, binary units.
std::string human_bytes(double bytes);

}  // namespace kvmark
