// What measuring a step adds to it.
#pragma once

#include "bench/plan/case.h"

namespace kvmark {

// The step that costs are held against, which is also the noise floor's: configs/quickstart.yaml's
// shape through `contiguous`, whole decoder steps.
Case quickstart_case(int threads);

struct HarnessCost {
  double step_ms = 0;       // median decode step of a round
  int clock_reads = 0;      // in a timed step
  double step_cost_us = 0;  // what the profiler's calls of a step take
  double share() const { return step_cost_us * 1e-3 / step_ms; }
};

// Runs a round of the case, then writes down which calls the profiler gets in a step and makes
// exactly these many times over, without the step: their time is told far more sharply than as the
// difference of two steps, of which each varies by more. Caches are warm then; a real step that
// drove the profiler's few lines out pays some more.
HarnessCost measure_harness_cost(const Case& c);

}  // namespace kvmark
