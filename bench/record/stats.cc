#include "bench/record/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "bench/record/or_null.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kOutlierMads = 5 * kNormalMad;
constexpr size_t kMinForP90 = 20, kMinForP95 = 40, kMinForP99 = 200;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

// The largest k with P(Binomial(n, 1/2) < k) ≤ 2.5 %, so that x(k) … x(n + 1 − k), counted from 1,
// covers the median with 95 % or more; 0 where even the extremes do not.
size_t median_rank(size_t n) {
  const double count = static_cast<double>(n);
  double log_pmf = -count * std::log(2.0);  // of 0; logarithms, as 2^−n underflows for long lists
  double below = 0;
  for (size_t k = 0; k < n; ++k) {
    below += std::exp(log_pmf);
    if (below > 0.025) return k;
    log_pmf += std::log((count - static_cast<double>(k)) / static_cast<double>(k + 1));
  }
  return 0;
}

// `s`: the median and the MAD of the samples.
std::vector<size_t> outliers_of(std::span<const double> samples, const Summary& s) {
  std::vector<size_t> found;
  for (size_t i = 0; i < samples.size() && *s.mad > 0; ++i) {
    if (std::abs(samples[i] - *s.p50) > kOutlierMads * *s.mad) found.push_back(i);
  }
  return found;
}

// 97.5 % quantile of Student's t for 1, 2, … degrees of freedom.
constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                               2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101};
constexpr double kStudentOfMore = 2.093;  // of 19; 1.96 in the limit

double student(size_t degrees) {
  return degrees <= std::size(kStudent) ? kStudent[degrees - 1] : kStudentOfMore;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

Summary summarize(std::span<const double> samples) {
  for (double sample : samples) check(std::isfinite(sample), "summarize: a sample is {}", sample);
  Summary s;
  s.n = samples.size();
  if (samples.empty()) return s;

  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double count = static_cast<double>(s.n);
  s.min = sorted.front();
  s.max = sorted.back();
  // Clamped, because a rounded sum may leave the range of equal samples.
  s.mean = std::clamp(std::accumulate(sorted.begin(), sorted.end(), 0.0) / count, *s.min, *s.max);
  if (s.n >= 2) {
    double squares = 0;
    for (double x : sorted) squares += (x - *s.mean) * (x - *s.mean);
    s.stddev = std::sqrt(squares / (count - 1));
  }

  s.p50 = quantile(sorted, 0.5);
  if (const size_t rank = median_rank(s.n); rank > 0) {
    s.p50_ci95 = {sorted[rank - 1], sorted[s.n - rank]};
  }
  if (s.n >= kMinForP90) s.p90 = quantile(sorted, 0.90);
  if (s.n >= kMinForP95) s.p95 = quantile(sorted, 0.95);
  if (s.n >= kMinForP99) s.p99 = quantile(sorted, 0.99);

  std::vector<double> deviations(s.n);
  std::transform(sorted.begin(), sorted.end(), deviations.begin(),
                 [&](double x) { return std::abs(x - *s.p50); });
  s.mad = median_of(deviations);
  s.outliers = outliers_of(samples, s).size();
  return s;
}

std::vector<size_t> outliers(std::span<const double> samples) {
  return outliers_of(samples, summarize(samples));
}

Json to_json(const Summary& s) {
  Json json;
  json["n"] = s.n;
  json["mean"] = or_null(s.mean);
  json["stddev"] = or_null(s.stddev);
  json["mad"] = or_null(s.mad);
  json["min"] = or_null(s.min);
  json["p50"] = or_null(s.p50);
  json["p50_ci95"] = s.p50_ci95 ? Json(*s.p50_ci95) : Json();
  json["p90"] = or_null(s.p90);
  json["p95"] = or_null(s.p95);
  json["p99"] = or_null(s.p99);
  json["max"] = or_null(s.max);
  json["outliers"] = s.outliers;
  return json;
}

std::optional<double> relative_width(const Summary& s) {
  if (!s.p50_ci95 || *s.p50 == 0) return std::nullopt;
  return ((*s.p50_ci95)[1] - (*s.p50_ci95)[0]) / std::abs(*s.p50);
}

std::optional<Slope> fit_slope(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size(), "fit_slope: {} x and {} y", x.size(), y.size());
  std::vector<double> log_x, log_y;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) continue;
    log_x.push_back(std::log(x[i]));
    log_y.push_back(std::log(y[i]));
  }
  if (log_x.empty()) return std::nullopt;
  const double count = static_cast<double>(log_x.size());
  const double mean_x = std::accumulate(log_x.begin(), log_x.end(), 0.0) / count;
  const double mean_y = std::accumulate(log_y.begin(), log_y.end(), 0.0) / count;
  double xx = 0, xy = 0;
  for (size_t i = 0; i < log_x.size(); ++i) {
    xx += (log_x[i] - mean_x) * (log_x[i] - mean_x);
    xy += (log_x[i] - mean_x) * (log_y[i] - mean_y);
  }
  // Equal x differ from their mean by rounding only.
  if (xx <= 1e-20 * count) return std::nullopt;
  Slope slope{xy / xx, {}};
  if (log_x.size() < 3) return slope;
  double squares = 0;  // of the deviations from the line
  for (size_t i = 0; i < log_x.size(); ++i) {
    const double off = log_y[i] - mean_y - slope.exponent * (log_x[i] - mean_x);
    squares += off * off;
  }
  const size_t degrees = log_x.size() - 2;
  slope.half_width = student(degrees) * std::sqrt(squares / static_cast<double>(degrees) / xx);
  return slope;
}

}  // namespace kvmark
