#include "bench/gate/rank_statistics.h"

#include <algorithm>
#include <cmath>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// How many Walsh averages lie beyond the bound on its side: the largest k with P(W ≤ k − 1) ≤
// alpha. 0: none may.
int64_t averages_beyond(int n, double alpha) {
  const std::vector<double> cumulative = signed_rank_distribution(n);
  return std::upper_bound(cumulative.begin(), cumulative.end(), alpha) - cumulative.begin();
}

// P(X ≥ hits) of a binomial X, by logarithms of its terms.
double binomial_upper_tail(int64_t hits, int64_t trials, double p) {
  double sum = 0;
  for (int64_t k = hits; k <= trials; ++k) {
    const double log_ways = std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) -
                            std::lgamma(static_cast<double>(trials - k) + 1);
    sum += std::exp(log_ways + k * std::log(p) + (trials - k) * std::log1p(-p));
  }
  return sum;
}

// The p at which `hits` or more are as likely as `tail`. The tail grows with p.
double lower_proportion(int64_t hits, int64_t trials, double tail) {
  if (hits == 0) return 0;
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (binomial_upper_tail(hits, trials, middle) < tail ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::vector<double> signed_rank_distribution(int n) {
  check(n >= 1, "the signed ranks of {} values", n);
  const int last = n * (n + 1) / 2;
  std::vector<double> mass(last + 1);
  mass[0] = 1;
  for (int rank = 1; rank <= n; ++rank) {
    for (int w = rank * (rank + 1) / 2; w >= 0; --w) {
      mass[w] = (mass[w] + (w >= rank ? mass[w - rank] : 0)) / 2;
    }
  }
  for (int w = 1; w <= last; ++w) mass[w] += mass[w - 1];
  return mass;
}

std::vector<double> walsh_averages(std::span<const double> values) {
  std::vector<double> averages;
  averages.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  return averages;
}

double hodges_lehmann(std::span<const double> values) {
  check(!values.empty(), "the centre of no values");
  const std::vector<double> averages = walsh_averages(values);
  const size_t n = averages.size();
  return (averages[(n - 1) / 2] + averages[n / 2]) / 2;
}

std::optional<double> lower_bound(std::span<const double> values, double confidence) {
  check(confidence > 0.5 && confidence < 1, "a bound with confidence {}", confidence);
  if (values.empty()) return {};
  const int64_t beyond = averages_beyond(static_cast<int>(values.size()), 1 - confidence);
  if (beyond == 0) return {};
  return walsh_averages(values)[beyond - 1];
}

std::optional<double> upper_bound(std::span<const double> values, double confidence) {
  std::vector<double> mirrored(values.begin(), values.end());
  for (double& value : mirrored) value = -value;
  const auto bound = lower_bound(mirrored, confidence);
  return bound ? std::optional(-*bound) : std::nullopt;
}

std::optional<std::array<double, 2>> centre_interval(std::span<const double> values,
                                                     double confidence) {
  const auto low = lower_bound(values, (1 + confidence) / 2);
  const auto high = upper_bound(values, (1 + confidence) / 2);
  if (!low || !high) return {};
  return std::array{*low, *high};
}

std::array<double, 2> proportion_interval(int64_t hits, int64_t trials, double confidence) {
  check(trials >= 1 && hits >= 0 && hits <= trials, "{} of {} trials", hits, trials);
  const double tail = (1 - confidence) / 2;
  return {lower_proportion(hits, trials, tail), 1 - lower_proportion(trials - hits, trials, tail)};
}

}  // namespace kvmark
