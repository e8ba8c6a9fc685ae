// How fast a row is beside another one.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bench/report/format.h"

namespace kvmark {

struct SpeedRatio {
  double ratio = 0;  // of rounds of one turn, their median; else of the rows' medians
  std::optional<std::array<double, 2>> interval;  // 95 %, of kIntervalSamples turns or more
  bool in_turns = false;  // the rows took turns, so that a drift fell on both alike
  size_t rounds = 0;      // of the row with fewer
};

// Did the rounds of both alternate? Then a drift of the machine fell on both alike.
bool took_turns(const nlohmann::ordered_json& record, const nlohmann::ordered_json& other);

// Without an interval, what is so many times as slow is slower all the same.
inline constexpr double kFar = 2;

// What a ratio says. same: its whole interval lies within kSameSpeed of 1, which is no difference
// to a user. open: its interval is wider and holds 1. rough: it has none.
enum class SpeedVerdict { faster, slower, same, open, rough };
inline constexpr double kSameSpeed = 0.01;
SpeedVerdict verdict_of(const SpeedRatio& speed);

// How many times as fast `record` is as `other`, by the rounds of both; nothing where one of them
// has no times.
std::optional<SpeedRatio> speed_ratio(const nlohmann::ordered_json& record,
                                      const nlohmann::ordered_json& other);

// The times of the rounds, ms, in their order.
std::vector<double> rounds_of(const nlohmann::ordered_json& record);

// The first row for which that holds, if there is one among those that were measured together with
// `record`, else of all; null where it holds for none.
template <typename Predicate>
const nlohmann::ordered_json* first_beside(const std::vector<const nlohmann::ordered_json*>& rows,
                                           const nlohmann::ordered_json& record, Predicate is_it) {
  const nlohmann::ordered_json* found = nullptr;
  for (const nlohmann::ordered_json* row : rows) {
    if (!is_it(*row)) continue;
    if (value_at(*row, "group_run") == value_at(record, "group_run")) return row;
    if (!found) found = row;
  }
  return found;
}

}  // namespace kvmark
