#include "bench/compare/comparison.h"

namespace kvmark {

ExitCode exit_code_of(const Comparison& comparison, bool strict) {
  ExitCode code = comparison.cases.empty() ? kExitUndecided : kExitFine;
  for (const CaseComparison& c : comparison.cases) {
    if (c.broke()) code = worst_of({code, c.status == "invalid" ? kExitInvalid : kExitFailed});
    for (const MetricComparison& m : c.metrics) {
      if (m.verdict == Verdict::worse) code = worst_of({code, kExitRegression});
      if (m.verdict == Verdict::undecided && strict) code = worst_of({code, kExitUndecided});
    }
  }
  return code;
}

}  // namespace kvmark
