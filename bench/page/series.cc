#include "bench/page/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/growth.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTimePoints = 64, kMemoryPoints = 128;

}  // namespace

Json thinned(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

Json cumulative_series(const Json& record) {
  const TimeSoFar so_far = time_so_far(record);
  if (so_far.tokens.empty()) return nullptr;
  Json tokens = Json::array(), seconds = Json::array();
  const double last = so_far.tokens.back();
  auto next = so_far.tokens.begin();  // the first point that is not taken yet
  for (size_t i = 0; i < kTimePoints && next != so_far.tokens.end(); ++i) {
    const double wanted =
        i + 1 < kTimePoints ? std::pow(last, static_cast<double>(i) / (kTimePoints - 1)) : last;
    if (next != so_far.tokens.begin() && wanted <= *(next - 1)) continue;
    const auto at = std::lower_bound(next, so_far.tokens.end(), wanted);
    tokens.push_back(static_cast<int64_t>(*at));
    seconds.push_back(thinned(1e-3 * so_far.ms[at - so_far.tokens.begin()]));
    next = at + 1;
  }
  return {{"tokens", std::move(tokens)}, {"seconds", std::move(seconds)}};
}

Json gap_quantiles(const Json& record) {
  std::vector<double> gaps;
  for (const Json& gap : value_at(record, "samples.itl_ms")) {
    if (gap.is_number()) gaps.push_back(gap.get<double>());
  }
  if (gaps.empty()) return nullptr;
  std::sort(gaps.begin(), gaps.end());
  Json quantiles = Json::array();
  for (int percent = 0; percent <= 100; ++percent) {
    quantiles.push_back(thinned(quantile(gaps, percent / 100.0)));
  }
  return quantiles;
}

Json memory_series(const Json& record) {
  const Json& timeline = value_at(record, "memory.timeline");
  if (!timeline.is_array() || timeline.empty()) return nullptr;
  Json tokens = Json::array(), live = Json::array(), reserved = Json::array();
  const size_t points = std::min(timeline.size(), kMemoryPoints);
  for (size_t i = 0; i < points; ++i) {
    const Json& at = timeline[points > 1 ? i * (timeline.size() - 1) / (points - 1) : 0];
    tokens.push_back(value_at(at, "position"));
    live.push_back(value_at(at, "live_bytes"));
    reserved.push_back(value_at(at, "reserved_bytes"));
  }
  return {{"tokens", std::move(tokens)},
          {"live_bytes", std::move(live)},
          {"reserved_bytes", std::move(reserved)}};
}

}  // namespace kvmark
