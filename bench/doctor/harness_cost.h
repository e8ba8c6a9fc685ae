// What measuring a step adds to it.
#pragma once

#include <array>

#include "bench/plan/case.h"

namespace kvmark {

// The step that costs are held against, which is also the noise floor's: configs/quickstart.yaml's
// shape through `contiguous`, whole decoder steps.
Case quickstart_case(int threads);

struct HarnessCost {
  double step_ms = 0;   // median step that nobody watches
  int clock_reads = 0;  // in a step that the profiler watches
  // Watched step less unwatched one, as parts of the median step: median of the pairs and its 95 %
  // interval. At most about 0 where the cost drowns in noise.
  double share = 0;
  std::array<double, 2> share_ci95 = {};
};

// Takes the same step again and again in the middle of a run of the case (model level, one
// sequence), watched and not, in turns: A B, B A, …. So the profiler meets the caches that the step
// leaves behind, which costs several times what its clock reads take in a loop of their own. The
// copy of outputs in the few sampled steps of a round (at most 12) is not in it. A second or so.
HarnessCost measure_harness_cost(const Case& c);

}  // namespace kvmark
