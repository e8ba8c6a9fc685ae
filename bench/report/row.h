// What the report says about one record.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

struct Row {
  std::vector<std::string> cells;  // without figures a row ends after engine and context
  std::string note;                // status and reason of a row that is not ok
  bool has_figures = false;
};

// Before a ratio of medians of few rounds.
inline constexpr std::string_view kRoughMark = "~";
// Behind a ratio between rows that were not measured side by side (different `group_run`).
inline constexpr std::string_view kApartMark = "†";

// Behind a fraction of the read ceiling that no read can reach: what is above kLargestFraction is
// no noise.
inline constexpr std::string_view kAboveMark = "‡";
inline constexpr double kLargestFraction = 1.05;

bool is_ok(const nlohmann::ordered_json& record);
// Do its figures count? Those of an `ok` row, and of an `invalid` one that only misses its gate;
// where the results were wrong the timings are void.
bool has_figures(const nlohmann::ordered_json& record);
// The whole number at a dotted path, 0 where there is none.
int64_t length(const nlohmann::ordered_json& record, std::string_view path);
// A text as it is, everything else as JSON.
std::string text_of(const nlohmann::ordered_json& value);
// The preset, else the engine's name.
std::string engine_label(const nlohmann::ordered_json& record);
// The parts of the engine's name: the layout "paged:16", and the format, with a policy where it has
// one, "int8:g32"; `recompute` alone computes in f32.
std::string engine_layout(const nlohmann::ordered_json& record);
std::string engine_format(const nlohmann::ordered_json& record);
// "128+64": prompt and generated tokens.
std::string context_label(const nlohmann::ordered_json& record);

// The cells of a record. `baseline`: the row of the same lengths that this one is compared with, or
// null.
Row row_of(const nlohmann::ordered_json& record, const nlohmann::ordered_json* baseline);

// "contiguous 0.6312 s (slope 1.0, 32.5× faster)": seconds of a whole run, the exponent with which
// its time grows with the tokens (from an empty cache on, and where the run is long enough to say),
// and the ratio to the baseline's. "" where the whole run has no time.
std::string whole_run_of(const nlohmann::ordered_json& record,
                         const nlohmann::ordered_json* baseline);

}  // namespace kvmark
