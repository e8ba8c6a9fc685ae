// `kvmark run`: from config files and flags to rows, a table, a page and plots.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "bench/record/exit_code.h"
#include "bench/run/process.h"

namespace kvmark {

struct RunRequest {
  std::vector<std::string> configs;  // all in one run, one behind the other
  std::vector<Override> overrides;
  std::string folder;  // "": results/NAME-TIME
  bool resume = false;
  bool dry_run = false;
  bool report = true;   // the page and the plots
  std::string history;  // to which the rows are added when all is done; "": none
  WorkerCommand worker = own_worker_command();
};

// Of the statuses of rows: invalid before failed before fine.
ExitCode exit_code_of(const std::vector<std::string>& statuses);

// The result goes to `out`, everything else to `err` (progress to stderr itself, when it is a
// terminal). Throws UsageError before anything runs; afterwards whatever happens to a case is its
// row, and Ctrl-C gives kExitInterrupted.
ExitCode run(const RunRequest& request, std::ostream& out, std::ostream& err);

}  // namespace kvmark
