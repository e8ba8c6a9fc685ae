// How well this machine repeats itself, and which slowdowns can be told on it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bench/plan/case.h"
#include "bench/run/process.h"

namespace kvmark {

// A fresh process that runs a case's decode steps.
struct NoiseVisit {
  double step_ms = 0;    // the median step
  double disturbed = 0;  // run delay and steal during the steps, as a share of their time
};

// One visit: a worker is started and prepared, then rounds until there are at least 40 steps and
// 0.2 s of them. The case needs decode steps. Throws WorkerFailed.
NoiseVisit run_visit(const WorkerCommand& worker, const Case& c);

struct NoiseFloor {
  int visits = 0;    // that count
  int repeated = 0;  // because they were disturbed
  // Standard deviation of log(step): what two visits, one after the other, differ by, over √2.
  // Nothing where there were no visits.
  std::optional<double> visit_sigma = {};
  // The same from all visits: larger where the machine drifts, which the gate's pairs do not feel.
  std::optional<double> sigma_with_drift = {};
  std::optional<std::string> missing_because = {};
};

// How many visits: `most`, or fewer where they take longer than `budget_s` together, but then
// `fewest` (≥ 3).
struct VisitCount {
  int fewest = 8;
  int most = 16;
  double budget_s = 12;
};

// Visits of which more than 2 % of the time was lost are repeated as the gate repeats them: at most
// one in four, and without regard to the step that they showed; the others count as they are. What
// a visit throws as WorkerFailed becomes `missing_because`.
NoiseFloor measure_noise(const std::function<NoiseVisit()>& visit, const VisitCount& count = {});

// Visits on a machine where slowdowns of 5 % are promised to be found differ by at most this.
inline constexpr double kFitVisitSigma = 0.02;

// The smallest slowdown that the gate finds in 95 % of runs with so many pairs of visits, as a
// fraction: it must pass the screen (8 pairs, estimate ≥ 1.5 %) and then be called slower (estimate
// ≥ 2.5 %, one-sided lower bound at 1 − 0.005/8 above 0.5 %; eight rows). Differences of a pair are
// taken as normal with deviation √2 · visit_sigma; the Hodges–Lehmann estimate of n such has the
// deviation √(π/3) · √2 · visit_sigma / √n (Hodges & Lehmann, 1963: efficiency 3/π). A
// prediction: `kvmark selftest-gate` measures the rate.
double smallest_slowdown(double visit_sigma, int pairs);

}  // namespace kvmark
