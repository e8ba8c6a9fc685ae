// One case on its way through a group: its worker, its rounds, its row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/case.h"
#include "bench/plan/plan.h"
#include "bench/run/process.h"
#include "bench/run/progress.h"
#include "bench/run/record_builder.h"

namespace kvmark {

// How long a worker may be silent: a floor, and a multiple of what was predicted.
struct Patience {
  double floor_s = 60;
  double factor = 30;

  double seconds(double predicted_s) const { return floor_s + factor * predicted_s; }
};

// What the cases of a run share.
struct RunContext {
  Sampling sampling;
  WorkerCommand worker;
  std::string folder;  // of the run: workers.log and the reference files go there
  std::string run_id;
  MachineState machine;                 // before the run put its own load on it
  std::optional<int64_t> memory_bytes;  // that all workers together may take; nothing: unknown
  Patience patience;
  std::function<void(const nlohmann::ordered_json& record)> append;  // a finished row, at once
  std::function<void(const std::string& text)> warn;
  Progress* progress = nullptr;

  std::string log_path() const { return folder + "/workers.log"; }
};

// Why no further round starts: "single", "cap", "width" or "budget"; nothing: another round is due.
// `figures`: what each round so far gave; `spent_s`: seconds of this case's rounds.
std::optional<std::string> stop_reason(const Sampling& sampling, const std::vector<double>& figures,
                                       double spent_s);

// Throws WorkerFailed where a `samples` reply lacks what the parent needs (protocol.md).
void check_samples(const nlohmann::ordered_json& reply);

// Throws WorkerFailed where a `verified` reply lacks what the parent needs.
void check_verified(const nlohmann::ordered_json& reply);

// Why `correct` of a `verified` reply has not passed.
std::string why_incorrect(const nlohmann::ordered_json& correct);

// Whatever happens to the worker becomes the row of this case; only Interrupted passes through.
class CaseRun {
 public:
  CaseRun(const Case& c, const Prediction& predicted, std::string group_run,
          const RunContext& context);

  // The file of the format-loss reference, or nothing and why.
  struct Reference {
    std::optional<std::string> path;
    std::string missing_because;
  };
  // Starts the worker: prepare and verify.
  void start(const Reference& reference);
  // The same of the case that the others are compared with: it writes the reference to `path`.
  // False where it did not get through; its row then says why.
  bool start_as_reference(const std::string& path);
  // One timed round; ends the sampling when it was the last.
  void round();
  // Another round is due.
  bool sampling() const { return !written_ && !stop_reason_; }
  // Counts rounds, time and width anew, for a case that stands as anchor in a further wave.
  void sample_again();
  // finish, and the row.
  void finish();

  bool started() const { return worker_ || written_; }
  const Case& spec() const { return case_; }
  // One a round, since the start or the last sample_again().
  const std::vector<double>& figures() const { return figures_; }
  // Its rounds alternate with those of another case.
  void note_turns() { outcome_.interleaved = true; }
  // Adds a reason to doubt the timings to the row, when that is not yet written.
  void doubt(std::string reason) { outcome_.unstable.push_back(std::move(reason)); }

 private:
  template <typename Step>
  void guarded(Step step);
  void prepare();
  void verify(nlohmann::ordered_json request);
  void judge();
  nlohmann::ordered_json ask(nlohmann::ordered_json command, const char* expected,
                             double predicted_s);
  void end(const char* status, std::optional<std::string> reason);
  std::string counts_path() const;  // callgrind's file, which stays in the run's folder

  const Case& case_;
  const Prediction predicted_;
  const std::string group_run_;
  const RunContext& context_;
  std::unique_ptr<WorkerProcess> worker_;
  CaseOutcome outcome_;
  std::string digest_;  // as verified
  std::vector<double> figures_;
  double spent_s_ = 0;
  std::optional<std::string> stop_reason_;
  bool written_ = false;
};

// The row of a case that is not run.
nlohmann::ordered_json skipped_record(const Case& c, const std::string& reason,
                                      const std::string& group_run, const RunContext& context);

// "paged:16/f32 model seed-gqa at 640": which case it is, for progress and logs.
std::string case_label(const Case& c);

}  // namespace kvmark
