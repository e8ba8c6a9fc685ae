// The decode workload of a case, run against one engine: settle, first token, decode, rewind.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/plan/case.h"
#include "bench/record/profiler.h"
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
  double decode_ms = 0;
  std::string digest;
  nlohmann::ordered_json profile;
  int64_t positions_computed = 0;  // of one sequence
};

// One point of the cache's growth.
struct MemoryPoint {
  int position = 0;
  Footprint footprint;
  std::optional<int64_t> rss_bytes;
};

class Workload {
 public:
  // Loads weights and makes the engine (seconds for real models). Throws RuntimeError.
  Workload(const Case& c, int settle_steps);
  ~Workload();

  const Case& spec() const { return case_; }
  KvEngine& engine() { return *engine_; }
  ThreadPool& pool() { return pool_; }
  int64_t weight_bytes() const { return model_ ? model_->weight_bytes() : 0; }
  // Null at attention level.
  ModelRunner* model() { return model_; }

  // A timed round, settle steps before it.
  RoundSamples round();

  // The same steps untimed. `watch` sees the sampled steps (null: nobody); an engine that keeps
  // nothing between steps skips the others, unless its tokens depend on them. Gives the digest of a
  // round and fills the memory time line.
  std::string rehearse(StepObserver* watch);

  // `steps` single rows from an empty cache (a fresh set of sequences), every step watched.
  void run_short(int steps, StepObserver& watch);

  // A fresh engine, whose memory is that of the rounds alone (scoring a long text takes more).
  void renew_engine();
  // Closes the workload's sequences; the next round opens or fills them anew.
  void close_all();

  // Of the last round, when its last token had been generated.
  const Footprint& footprint() const { return footprint_; }
  const std::vector<MemoryPoint>& timeline() const { return timeline_; }

 private:
  void open();
  void fill();
  void settle();
  void to_start();
  void first_step(Outputs outputs, StepObserver* observer);
  void decode_step(int step, StepObserver* observer);
  void feed(int first, int rows, Outputs outputs, StepObserver* observer);
  bool keeps_rows() const;

  Case case_;
  int settle_steps_;
  ThreadPool pool_;
  std::unique_ptr<KvEngine> engine_;
  std::unique_ptr<StepRunner> runner_;
  ModelRunner* model_ = nullptr;
  std::vector<SeqId> sequences_;
  std::vector<Piece> pieces_;
  std::vector<char> sampled_;  // by step
  Footprint footprint_;
  std::vector<MemoryPoint> timeline_;
  int64_t fed_ = 0;  // rows of sequence 0
};

}  // namespace kvmark
