// How well this machine repeats itself, and which slowdowns can be told on it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bench/gate/visit.h"
#include "bench/plan/case.h"

namespace kvmark {

struct NoiseFloor {
  int visits = 0;    // that count
  int repeated = 0;  // because they were disturbed
  // The noise of one visit, as the gate sees it in pairs of neighbours. Nothing where there were no
  // visits.
  std::optional<double> visit_sigma = {};
  // Standard deviation of log(step) over all visits: larger where the machine drifts, which pairs
  // do not feel.
  std::optional<double> sigma_with_drift = {};
  // Median time of a visit's worker from its start until it was ready for the first step.
  std::optional<double> worker_start_ms = {};
  std::optional<std::string> missing_because = {};
};

// Of the median steps of visits, in the order in which they were made; three or more.
NoiseFloor noise_of(std::span<const double> steps_ms);

// How many pairs of visits: `most`, or fewer where they take longer than `budget_s` together, but
// then `fewest` (≥ 2).
struct PairCount {
  int fewest = 4;
  int most = 8;
  double budget_s = 12;
};

// Pairs of visits of a case by one and the same build, taken and repeated as the gate does. What a
// worker fails of becomes `missing_because`.
NoiseFloor measure_noise(const Binary& binary, const Case& c, const PairCount& count = {});

// The smallest slowdown that the gate's procedure finds in 95 % of runs when its confirmation takes
// so many pairs of visits (11 or more, else there is no bound), as a fraction: it must pass the
// screen, and then its estimate and its lower bound must reach their limits, with the risk shared
// by as many rows as are gated at most. From simulated runs, always the same, with normal noise;
// some 0.2 s. `kvmark selftest-gate` measures the rate on the machine itself.
double smallest_slowdown(double visit_sigma, int pairs);

}  // namespace kvmark
