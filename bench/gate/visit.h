// A visit: one look at how fast a build runs a case, by a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/plan/case.h"
#include "bench/plan/plan.h"
#include "bench/run/case_run.h"
#include "bench/run/process.h"

namespace kvmark {

// A build of kvmark.
struct Binary {
  std::string name;        // for people: its path
  WorkerCommand worker;    // serves a case by bench/run/protocol.md
  double extra_work = 0;   // part of a step's time that it is made to take longer
  std::string build = {};  // its --version, size and time of change: which build of that name it is
};

// The program at `path`. Throws UsageError where there is none, it cannot be run, or it is no
// kvmark.
Binary open_binary(const std::string& path);

struct VisitOptions {
  int min_steps = 40;        // fewer have no steady median ...
  double min_steps_s = 0.2;  // ... and a shorter stretch is one mood of the machine
  int settle_steps = 8;
  Patience patience;
  std::string log_path;        // what workers write on stderr
  std::function<void()> tick;  // called while a worker is waited for
};

struct Visit {
  double start_ms = 0;  // from the start of its process until it was prepared, weights included
  double step_ms = 0;   // the median decode step
  int steps = 0;
  std::optional<double> p99_ms;  // nothing where they are too few to tell (stats.h)
  std::string digest;            // of what its rounds computed
  // Run delay and stolen time, as a part of the visit's time; nothing where the system tells no run
  // delay.
  std::optional<double> disturbance;
};

// A worker computed something else than before.
struct ResultChanged : WorkerFailed {
  using WorkerFailed::WorkerFailed;
};

// Starts the build's worker, its stack shifted by a random length of environment, and takes as many
// rounds as the options ask for. Throws WorkerFailed, ResultChanged when rounds computed different
// things, and Interrupted.
Visit take_visit(const Binary& binary, const Case& c, const VisitOptions& options,
                 std::mt19937_64& random);

// Whether the build knows a case: nothing, or why not. It doesn't where it calls the case a mistake
// of the user's, or reads another case because it ignored a key. Throws WorkerFailed where it gets
// to neither, and Interrupted.
std::optional<std::string> why_unknown(const Binary& binary, const Case& c,
                                       const VisitOptions& options);

// The digest of what the build's `verify` computes of a case. Throws WorkerFailed, also where that
// is not correct, and Interrupted.
std::string verified_digest(const Binary& binary, const Case& c, const VisitOptions& options);

// A pair of a plan as configs/ci.yaml, for the progress line's first guess.
inline constexpr double kPairSeconds = 0.6;

// Visits in pairs. A visit that is known to be disturbed is taken again, whichever build it is of,
// as long as at most a quarter of all visits were; after that it counts as it is.
class VisitPairs {
 public:
  VisitPairs(const Binary& base, const Binary& now, const VisitOptions& options, uint64_t seed);

  struct Pair {
    Visit base, now;
    bool base_first = true;
    double difference() const;  // log(time of now) − log(time of base)
  };
  // The `index`-th pair of a case: the build that goes first alternates. Throws SideFailed.
  Pair take(const Case& c, int index);

  int visits() const { return visits_; }    // those that were repeated included
  int repeats() const { return repeats_; }  // visits that were taken again
  int unknown() const {
    return unknown_;
  }  // those of which nobody knows whether they were disturbed

 private:
  Visit undisturbed(const Binary& binary, const Case& c);

  const Binary &base_, &now_;
  const VisitOptions& options_;
  std::mt19937_64 random_;
  int visits_ = 0, repeats_ = 0, unknown_ = 0;
};

// Whose worker failed, and what that makes of the row.
struct SideFailed : RuntimeError {
  SideFailed(const std::string& what, bool is_base, std::string row_status)
      : RuntimeError(what), base(is_base), status(std::move(row_status)) {}
  bool base;
  std::string status;  // failed, or invalid: it computed something else
};

// The plan of a gate. Throws UsageError, also for one that counts: visits measure time.
Plan timed_plan(const std::string& config, const std::vector<Override>& overrides);

}  // namespace kvmark
