#include "bench/compare/comparison.h"

#include <algorithm>

namespace kvmark {

bool anything_compared(const Comparison& comparison) {
  const auto judged = [](const MetricComparison& m) { return m.verdict != Verdict::shown; };
  return std::any_of(comparison.cases.begin(), comparison.cases.end(), [&](const auto& c) {
    return c.broke() || std::any_of(c.metrics.begin(), c.metrics.end(), judged);
  });
}

ExitCode exit_code_of(const Comparison& comparison, bool strict) {
  ExitCode code = comparison.times_lost ? kExitUndecided : kExitFine;
  for (const CaseComparison& c : comparison.cases) {
    if (c.broke()) code = worst_of({code, c.status == "invalid" ? kExitInvalid : kExitFailed});
    if (c.vanished() && strict) code = worst_of({code, kExitUndecided});
    for (const MetricComparison& m : c.metrics) {
      if (m.verdict == Verdict::worse) code = worst_of({code, kExitRegression});
      if (m.verdict == Verdict::undecided && strict) code = worst_of({code, kExitUndecided});
    }
  }
  for (const OneSided& one : comparison.one_sided) {
    if (one.vanished && strict) code = worst_of({code, kExitUndecided});
  }
  return anything_compared(comparison) ? code : kExitUndecided;
}

}  // namespace kvmark
