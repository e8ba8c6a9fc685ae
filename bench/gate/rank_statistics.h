// Location of a sample without assuming a distribution, and the interval of a proportion.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvmark {

// P(W ≤ w) for w = 0 … n(n+1)/2, where W, Wilcoxon's signed-rank statistic, is the sum of the ranks
// 1 … n whose random signs are positive: exact, by convolution of the ranks; O(n³). n ≥ 1, up to
// some hundreds.
std::vector<double> signed_rank_distribution(int n);

// The mean of each pair of values, and each value itself: n(n+1)/2 of them, sorted.
std::vector<double> walsh_averages(std::span<const double> values);

// The centre of a symmetric distribution: the median of the Walsh averages (Hodges & Lehmann,
// 1963), of paired differences an estimate of the shift. A few wild values hardly move it. Throws
// LogicError without values.
double hodges_lehmann(std::span<const double> values);

// Bounds of that centre which hold with at least `confidence` each, in (0.5, 1): the order
// statistics of the Walsh averages where Wilcoxon's test would just not reject (Hollander & Wolfe,
// Nonparametric Statistical Methods, section 3.3). Exact for every symmetric continuous
// distribution. Nothing where so few values carry no such bound.
std::optional<double> lower_bound(std::span<const double> values, double confidence);
std::optional<double> upper_bound(std::span<const double> values, double confidence);

// Both, each with half of what is left: holds with at least `confidence`.
std::optional<std::array<double, 2>> centre_interval(std::span<const double> values,
                                                     double confidence);

// The interval of a proportion of which `hits` of `trials` were seen (Clopper & Pearson, 1934):
// covers it with at least `confidence` whatever it is. 0 ≤ hits ≤ trials, trials ≥ 1.
std::array<double, 2> proportion_interval(int64_t hits, int64_t trials, double confidence);

}  // namespace kvmark
