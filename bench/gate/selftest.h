// `kvmark selftest-gate`: how far `kvmark ab` can be trusted on this machine.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/gate/procedure.h"
#include "bench/gate/visit.h"
#include "bench/plan/plan.h"
#include "bench/record/exit_code.h"

namespace kvmark {

// What is promised, and the noise of a visit up to which it is.
inline constexpr double kPromisedFalseAlarms = 0.01;  // of runs
inline constexpr double kPromisedFound = 0.95;        // of slowdowns of 5 %
inline constexpr double kPromisedSigma = 0.02;

struct SelftestRequest {
  Binary base, now;  // builds of the same source
  std::string config;
  std::vector<Override> overrides;
  std::string folder;      // gets selftest.jsonl; one that is there goes on; "": results/…
  int pairs = 300;         // of builds without a change, to be resampled
  int runs = 20;           // whole ones without a change
  int injected = 94;       // runs of a single row that is slowed down ...
  double slowdown = 0.05;  // ... by this part of a step
  ProcedureOptions procedure;
  VisitOptions visit;  // settle_steps, log_path and tick are set here
};

// Takes the pairs, whole runs and slowed runs that the folder lacks, each kept as soon as it is
// there, then writes what they say to `out`; the first kMostGatedRows rows of the plan take part.
// Gives kExitFine where what is promised was seen, or the machine is too noisy for the promise,
// and kExitUndecided where it should hold and was not seen. Throws UsageError, also for a folder
// whose test was of something else. Ctrl-C gives kExitInterrupted.
ExitCode selftest_gate(const SelftestRequest& request, std::ostream& out, std::ostream& err);

}  // namespace kvmark
