// `kvmark ab`: two builds on one plan, side by side; is the new one slower, fatter or less exact?
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/gate/procedure.h"
#include "bench/gate/visit.h"
#include "bench/plan/plan.h"

namespace kvmark {

// Rows whose time is gated; the more there are, the longer a slowdown of all of them takes.
inline constexpr int kMostGatedRows = 8;

struct AbRequest {
  Binary base, now;
  std::string config;
  std::vector<Override> overrides;
  std::string folder;  // gets base/ and new/, a run's folder each, and ab.json; "": results/…
  ProcedureOptions procedure;
  VisitOptions visit;  // settle_steps, log_path and tick are set here
};

// First every case is verified once by each build, and the records are compared for what is exact:
// status, correctness, loss, bytes. A fault there ends it. Then the decode steps of the first
// kMostGatedRows rows are timed as procedure.h asks. Warnings go to `err`, progress to stderr when
// it is a terminal. Throws UsageError before anything is measured. Nothing after Ctrl-C. However it
// ends, ab.json holds what was measured.
std::optional<Comparison> ab(const AbRequest& request, std::ostream& err);

}  // namespace kvmark
