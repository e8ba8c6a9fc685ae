// The decode workload of a case, run against one engine: settle, first token, decode, rewind.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/plan/case.h"
#include "bench/record/counters.h"
#include "bench/record/probes.h"
#include "bench/record/profiler.h"
#include "bench/run/extra_work.h"
#include "bench/run/step_runner.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

// Steps are numbered by the token they generate: step 0 feeds the prompt, step i ≥ 1 decodes.
// The steps that are verified, digested and compared with the reference: up to `most`, spread
// evenly, always the first and the last.
std::vector<int> sampled_steps(int gen_len, int most);

// The bits of attention outputs as one number.
class Digest {
 public:
  void add(const float* values, int64_t count);
  std::string hex() const;

 private:
  uint64_t state_ = 0x6b766d61726b2f31u;
};

// What one round measured; lists hold one number a decode step.
struct RoundSamples {
  double first_token_ms = 0;  // model level only
  std::vector<double> itl_ms;
  std::vector<double> attend_ms;
  std::string digest;
  nlohmann::ordered_json profile;
  Probes probes;                   // of the timed part
  Counts counts;                   // of the decode steps
  int64_t positions_computed = 0;  // of one sequence
  Footprint footprint;             // when the last token had been generated
  std::vector<Event> events;
};

// One point of the cache's growth.
struct MemoryPoint {
  int position = 0;
  Footprint footprint;
};

class Workload {
 public:
  // Loads weights and makes the engine (seconds for real models). `extra_work`: part of a step's
  // time that every decode step takes longer than it has to. Throws RuntimeError.
  Workload(const Case& c, int settle_steps, double extra_work = 0);
  ~Workload();

  const Case& spec() const { return case_; }
  KvEngine& engine() { return *engine_; }
  ThreadPool& pool() { return pool_; }
  int64_t weight_bytes() const { return model_ ? model_->weight_bytes() : 0; }
  // Null at attention level.
  ModelRunner* model() { return model_; }
  const HardwareCounters& counters() const { return counters_; }

  // A timed round, settle steps before it; with extra work the first one has one more before it,
  // which says how long a step takes.
  RoundSamples round();

  // The same steps untimed, on a fresh engine. `watch` sees the filling of the context and the
  // sampled steps (null: nobody); an engine that keeps nothing between steps skips the others,
  // unless its tokens depend on them. Gives the digest of a round.
  std::string rehearse(StepObserver* watch);

  // `steps` single rows from an empty cache (an engine of its own, which stays until the next
  // rehearsal), every step watched.
  void run_short(int steps, StepObserver& watch);

  // A further engine of the case, made for scoring as well (longer texts, more rows).
  std::unique_ptr<KvEngine> make_scoring_engine();

  // Of the last rehearsal. `clamped`: values beyond the format's range among all rows stored.
  const std::vector<MemoryPoint>& timeline() const { return timeline_; }
  int64_t clamped() const { return clamped_; }

 private:
  std::unique_ptr<KvEngine> make_engine(const Case& c);
  void remake_engine(const Case& c);
  void open();
  void close();
  void fill(StepObserver* watch);
  void settle();
  RoundSamples timed_round();
  void to_start(StepObserver* watch = nullptr);
  void first_step(Outputs outputs, StepObserver* observer);
  void decode_step(int step, StepObserver* observer);
  void timed_step(int step, StepProfiler& profiler);
  void feed(int first, int rows, Outputs outputs, StepObserver* observer);
  bool keeps_rows() const;

  const Case case_;
  const Case rounds_case_;  // without the scoring, which takes larger engines
  int settle_steps_;
  HardwareCounters counters_;  // before the threads that they count
  ThreadPool pool_;
  ExtraWork extra_work_;
  std::unique_ptr<KvEngine> engine_;
  std::unique_ptr<StepRunner> runner_;
  ModelRunner* model_ = nullptr;
  std::vector<SeqId> sequences_;
  std::vector<Piece> pieces_;
  std::vector<char> sampled_;  // by step
  std::vector<MemoryPoint> timeline_;
  int64_t clamped_ = 0;
  int64_t fed_ = 0;  // rows of sequence 0
};

}  // namespace kvmark
