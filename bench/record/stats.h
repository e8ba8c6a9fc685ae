// Descriptive statistics of repeated measurements, and the growth of a curve.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

namespace kvmark {

// Fewer samples carry no interval of their median.
inline constexpr int kIntervalSamples = 6;
// The standard deviation of a normal distribution, over its MAD.
inline constexpr double kNormalMad = 1.4826;

// What a list of samples says; a figure that n samples cannot carry is left out (null in JSON).
struct Summary {
  size_t n = 0;
  std::optional<double> mean;
  std::optional<double> stddev;  // by n − 1; n ≥ 2
  std::optional<double> mad;     // median of |x − median|, not scaled
  std::optional<double> min;
  std::optional<double> p50;
  std::optional<std::array<double, 2>> p50_ci95;  // n ≥ kIntervalSamples
  std::optional<double> p90;                      // n ≥ 20
  std::optional<double> p95;                      // n ≥ 40
  std::optional<double> p99;                      // n ≥ 200
  std::optional<double> max;
  size_t outliers = 0;  // samples further than 5 · 1.4826 · MAD from the median; 0 where MAD is 0
};

// What a part q of the values, 0 ≤ q ≤ 1, lies below, interpolated linearly between order
// statistics (type 7 of Hyndman & Fan, 1996). `sorted` holds at least one value.
double quantile(std::span<const double> sorted, double q);

// Percentiles are quantiles as above. The
// interval of the median is the narrowest pair of order statistics x(k), x(n + 1 − k) that covers
// the median of any continuous distribution with at least 95 % (binomial; no normality assumed).
// No samples: everything but n and outliers is left out. A NaN or infinity throws LogicError.
Summary summarize(std::span<const double> samples);

// Which of the samples Summary::outliers counts, ascending from 0.
std::vector<size_t> outliers(std::span<const double> samples);

// The record's S: every key is there, null where the figure is left out.
nlohmann::ordered_json to_json(const Summary& summary);

// Width of p50_ci95 over the median: what the stop rule compares with sampling.target_width.
// Nothing where there is no interval or the median is 0.
std::optional<double> relative_width(const Summary& summary);

struct Slope {
  double exponent = 0;
  std::optional<double> half_width;  // of its 95 % interval; three points or more
};

// Exponent b of y ≈ a · x^b, by least squares on the logarithms; the interval from what the points
// deviate from the line (Student's t, so right where these deviations are independent). Points that
// are not positive are left out; fewer than two distinct x give nothing. The lists must have the
// same length.
std::optional<Slope> fit_slope(std::span<const double> x, std::span<const double> y);

}  // namespace kvmark
