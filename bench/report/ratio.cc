#include "bench/report/ratio.h"

#include <algorithm>

#include "bench/record/stats.h"

namespace kvmark {

using Json = nlohmann::ordered_json;

bool took_turns(const Json& record, const Json& other) {
  const Json& turn = value_at(record, "group_run");
  return !turn.is_null() && turn == value_at(other, "group_run") &&
         value_at(record, "sampling.interleaved") == true &&
         value_at(other, "sampling.interleaved") == true;
}

SpeedVerdict verdict_of(const SpeedRatio& speed) {
  if (!speed.interval) return SpeedVerdict::rough;
  const auto [low, high] = *speed.interval;
  if (low >= 1 - kSameSpeed && high <= 1 + kSameSpeed) return SpeedVerdict::same;
  if (low > 1) return SpeedVerdict::faster;
  return high < 1 ? SpeedVerdict::slower : SpeedVerdict::open;
}

std::vector<double> rounds_of(const Json& record) {
  std::vector<double> rounds;
  for (const Json& ms : value_at(record, "samples.round")) {
    if (ms.is_number()) rounds.push_back(ms.get<double>());
  }
  return rounds;
}

std::optional<SpeedRatio> speed_ratio(const Json& record, const Json& other) {
  const std::vector<double> ms = rounds_of(record), other_ms = rounds_of(other);
  // Above what no clock can tell, so that ratios stay finite.
  const auto is_time = [](double value) { return value > 1e-9 && value < 1e15; };
  if (ms.empty() || other_ms.empty() || !std::all_of(ms.begin(), ms.end(), is_time) ||
      !std::all_of(other_ms.begin(), other_ms.end(), is_time)) {
    return std::nullopt;
  }
  const size_t rounds = std::min(ms.size(), other_ms.size());
  if (!took_turns(record, other)) {
    return SpeedRatio{*summarize(other_ms).p50 / *summarize(ms).p50, {}, false, rounds};
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < rounds; ++i) ratios.push_back(other_ms[i] / ms[i]);
  const Summary summary = summarize(ratios);
  return SpeedRatio{*summary.p50, summary.p50_ci95, true, rounds};
}

}  // namespace kvmark
