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
  int rounds = 300;        // of pairs without a change, one of every row, to be resampled
  int runs = 20;           // whole ones without a change
  int injected = 94;       // runs of a single row that is slowed down ...
  double slowdown = 0.05;  // ... by this part of a step
  ProcedureOptions procedure;
  VisitOptions visit;  // settle_steps, log_path and tick are set here
};

// Verifies each row once by each build, then takes the pairs, whole runs and slowed runs that the
// folder lacks, each kept as soon as it is there, then writes what they say to `out`; the first
// kMostGatedRows rows of the plan take part. Gives kExitFine where what is promised was seen, and
// kExitUndecided where it was not. False alarms are promised everywhere; that slowdowns are found
// only where no row's noise exceeds kPromisedSigma. Throws UsageError, also for a folder
// whose test was of something else. Ctrl-C gives kExitInterrupted.
ExitCode selftest_gate(const SelftestRequest& request, std::ostream& out, std::ostream& err);

}  // namespace kvmark
