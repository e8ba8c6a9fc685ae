// `kvmark ab`: two builds on one plan, side by side; is the new one slower, fatter or less exact?
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "bench/gate/procedure.h"
#include "bench/gate/visit.h"
#include "bench/plan/plan.h"
#include "bench/record/exit_code.h"

namespace kvmark {

// Rows whose time is gated; the more there are, the longer a slowdown of all of them takes.
inline constexpr int kMostGatedRows = 8;

struct AbRequest {
  Binary base, now;
  std::string config;
  std::vector<Override> overrides;
  std::string folder;   // gets base/ and new/, a run's folder each, and ab.json; "": results/…
  bool strict = false;  // what is undecided counts
  bool all = false;     // as in render()
  std::string format = "table";                            // of `out`, as in render()
  std::vector<std::pair<std::string, std::string>> files;  // further formats, with their files
  ProcedureOptions procedure;
  VisitOptions visit;  // settle_steps, log_path and tick are set here
};

// First every case is verified once by each build, and the records are compared for what is exact:
// status, correctness, loss, bytes. A fault there ends it. Then the decode steps of the first
// kMostGatedRows rows are timed as procedure.h asks. The comparison goes to `out` and the files,
// warnings to `err`, progress to stderr when it is a terminal. Throws UsageError before anything is
// measured; Ctrl-C keeps what was measured in ab.json and gives kExitInterrupted.
ExitCode ab(const AbRequest& request, std::ostream& out, std::ostream& err);

}  // namespace kvmark
