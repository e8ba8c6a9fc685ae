#include "bench/run/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_worker(CLI::App& kvmark) {
  CLI::App* worker =
      kvmark.add_subcommand("worker", "Serve a run: one case, by bench/run/protocol.md");
  worker->group("");
  return {worker, [] {
            // A worker in mid-round doesn't see that its stdin was closed.
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            return run_worker(STDIN_FILENO, STDOUT_FILENO);
          }};
}

}  // namespace kvmark
