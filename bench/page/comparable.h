// Rows that can be held against each other, for the sentences of the summary.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report/ratio.h"
#include "bench/report/report.h"

namespace kvmark {

// The rows of one length; of an engine that was measured again, all of its rows.
struct Point {
  int64_t context = 0;  // tokens
  std::vector<const nlohmann::ordered_json*> rows;

  // The last row of an engine, null where there is none.
  const nlohmann::ordered_json* last_of(const std::string& engine) const;
};

// Rows of one machine that are ok and differ in the engine and the length alone. (At attention
// level also in the number of layers, by which a plan holds the working set constant.) A row that
// misses its gate is not praised.
struct ComparableRows {
  std::string setting;        // what tells them from others: "llama-3-8b, 2 threads"; "": nothing
  std::string timed_setting;  // the same where times are told: "Attention alone, llama-3-8b"
  std::string baseline;       // contiguous/f16, else the first engine with a cache; "": none
  std::vector<Point> points;  // by context; none is empty
  size_t rows = 0;

  // The longest at which the baseline was measured, else the longest of all.
  const Point& longest() const;
  // The rows of a point to speak of, six at most, one an engine, those in one piece before those in
  // pages: the first of each layout and kind of format before others of it; neither the baseline
  // nor recompute.
  std::vector<const nlohmann::ordered_json*> spoken_of(const Point& point) const;
};

// Those with most rows first, of as many those of whole steps, which a user waits for. The records
// must outlive them.
std::vector<ComparableRows> comparable_rows(Records records);

// The figures that step_speed() is of.
inline constexpr std::array<std::string_view, 3> kStepTimes = {
    "latency.tpot_ms.p50", "throughput.decode_tok_per_s", "throughput.decode_tok_per_s_per_seq"};

// How many times as fast a row's decode steps are as another's. Nothing where times say nothing of
// the engines: one kernel is generic and the other is not, or no steps were decoded.
std::optional<SpeedRatio> step_speed(const nlohmann::ordered_json& row,
                                     const nlohmann::ordered_json& other);

// "int8:g32" of what lies in one piece, "paged:16/int8:g32". (No presets: "contiguous" is f32
// there, and a layout to everybody else.)
std::string short_name(const nlohmann::ordered_json& row);

// Recomputes everything at each step and keeps nothing.
bool has_no_cache(const nlohmann::ordered_json& record);

}  // namespace kvmark
