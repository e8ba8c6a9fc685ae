// What the report says about one record.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report/report.h"

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

// Behind what is wrong, or misses its gate.
inline constexpr std::string_view kWrongMark = "✗";
// Behind a row that was disturbed.
inline constexpr std::string_view kDoubtMark = "§";

// Behind a fraction of the read ceiling that no read can reach: what is above kLargestFraction is
// no noise.
inline constexpr std::string_view kAboveMark = "‡";
inline constexpr double kLargestFraction = 1.05;
// Behind the ceiling of shuffled pages where that is as much above the one of reading in one piece.
inline constexpr std::string_view kPagesAboveMark = "¶";

bool is_ok(const nlohmann::ordered_json& record);
// Do its figures count? Those of an `ok` row, and of an `invalid` one that only misses its gate;
// where the results were wrong the timings are void.
bool has_figures(const nlohmann::ordered_json& record);
// Was it computed by a generic kernel, which decodes to f32 first? Then its speed says nothing of
// its format.
bool is_generic(const nlohmann::ordered_json& record);
// The number at a dotted path, nothing where there is none, or no record.
std::optional<double> figure(const nlohmann::ordered_json& record, std::string_view path);
std::optional<double> figure(const nlohmann::ordered_json* record, std::string_view path);
// The whole number at a dotted path, 0 where there is none.
int64_t length(const nlohmann::ordered_json& record, std::string_view path);
// A text as it is, everything else as JSON.
std::string text_of(const nlohmann::ordered_json& value);
// The engine's own name, "contiguous/f16".
std::string engine_name(const nlohmann::ordered_json& record);
// The preset, else the engine's name.
std::string engine_label(const nlohmann::ordered_json& record);
// Have all of them a preset? Else tables name all engines by their own names.
bool all_have_presets(Records records);
// Has the case a setting other than the usual one that a reader must know of?
bool is_unusual(std::string_view case_key, const nlohmann::ordered_json& value);
// "41.2": GB/s of a ceiling.
std::string ceiling_text(double gb_per_s);
// The parts of the engine's name: the layout "paged:16", and the format, with a policy where it has
// one, "int8:g32"; `recompute` alone computes in f32.
std::string engine_layout(const nlohmann::ordered_json& record);
std::string engine_format(const nlohmann::ordered_json& record);
// Keys of a case that say how long its rows are.
inline constexpr std::array<std::string_view, 4> kLengthKeys = {"prompt_len", "gen_len", "seq_len",
                                                                "max_seq_len"};
// Is the key of a case in that list?
template <typename Keys>
bool is_one_of(std::string_view key, const Keys& keys) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}
// The case without its engine, what goes with that, and `keys`, as text: equal for rows that are
// equal otherwise.
std::string rest_of_case(const nlohmann::ordered_json& record,
                         const std::vector<std::string_view>& keys = {});
// The case with the parts of its objects beside its own keys, "score.text" of `score`; without
// nulls, and without its gate, which goes with the engine's format.
nlohmann::ordered_json flat_case(const nlohmann::ordered_json& record);
// The single values that cases hold besides the table's fields, in the order in which they come up.
std::vector<std::string> further_case_keys(Records records);
// Tokens of context: the prompt, or what is generated from an empty cache.
int64_t context_tokens(const nlohmann::ordered_json& record);
// "128+64": prompt and generated tokens.
std::string context_label(const nlohmann::ordered_json& record);

// The cells of a record behind its name `engine`, in the order of the report's columns.
// `baseline`: the row of the same lengths that this one is compared with, or null.
Row row_of(const nlohmann::ordered_json& record, std::string engine,
           const nlohmann::ordered_json* baseline);

// Before the exponent of a whole run's growth.
inline constexpr std::string_view kSlope = "slope ";

// "contiguous 0.6312 s (slope 1.0, 32.5× faster)": seconds of a whole run, the exponent with which
// its time grows with the tokens (from an empty cache on, and where the run is long enough to say),
// and the ratio to the baseline's. "" where the whole run has no time.
std::string whole_run_of(const nlohmann::ordered_json& record, const std::string& engine,
                         const nlohmann::ordered_json* baseline);

}  // namespace kvmark
