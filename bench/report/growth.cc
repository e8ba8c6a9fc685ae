#include "bench/report/growth.h"

#include <algorithm>

#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {

using Json = nlohmann::ordered_json;

TimeSoFar time_so_far(const Json& record) {
  const Json& gaps = value_at(record, "samples.itl_ms");
  const auto first_token = figure(record, "latency.ttft_ms.p50");
  const int64_t stride = length(record, "samples.itl_stride");
  const double last_token = static_cast<double>(length(record, "case.gen_len"));
  if (!first_token || !gaps.is_array() || gaps.empty() || stride < 1) return {};
  TimeSoFar so_far{{1}, {*first_token}};
  for (const Json& gap : gaps) {
    if (!gap.is_number()) return {};
    const double before = so_far.tokens.back();
    const double now = std::min(before + static_cast<double>(stride), last_token);
    if (now <= before) break;
    so_far.tokens.push_back(now);
    so_far.ms.push_back(so_far.ms.back() + gap.get<double>() * (now - before));
  }
  return so_far;
}

std::optional<double> growth_of(const Json& record) {
  if (length(record, "case.prompt_len") > 0 || length(record, "case.gen_len") < kGrowthTokens) {
    return std::nullopt;
  }
  TimeSoFar last_half = time_so_far(record);
  if (last_half.tokens.empty()) return std::nullopt;
  const auto half = std::lower_bound(last_half.tokens.begin(), last_half.tokens.end(),
                                     last_half.tokens.back() / 2);
  last_half.ms.erase(last_half.ms.begin(),
                     last_half.ms.begin() + (half - last_half.tokens.begin()));
  last_half.tokens.erase(last_half.tokens.begin(), half);
  const auto slope = fit_slope(last_half.tokens, last_half.ms);
  return slope ? std::optional(slope->exponent) : std::nullopt;
}

}  // namespace kvmark
