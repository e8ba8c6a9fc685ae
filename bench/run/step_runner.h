// One step of the workload, whatever its level: the whole decoder, or the attention alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/plan/case.h"
#include "engines/core/backend.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"
#include "engines/model/decoder.h"
#include "engines/model/synthetic.h"
#include "engines/model/weights.h"

namespace kvmark {

// Feeds rows of the case's sequences to an engine. Piece i of a step belongs to sequence index i
// (0 ≤ i < batch), whatever id the engine gave it; what the rows hold is a function of the case,
// the index and the position alone (under greedy decoding also of the engine's own outputs).
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Makes rows [first, first + rows) of every sequence ready, so that step() has only the work to
  // do that is measured. Replaces what was staged before. Steps without outputs, which only store,
  // need nothing staged.
  virtual void stage(int /*first*/, int /*rows*/) {}
  // begin … commit. Throws RuntimeError when the engine refuses. `observer` may be null.
  virtual void step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
                    StepObserver* observer) = 0;
};

// The decoder on the case's weights, with the tokens of the case.
class ModelRunner : public StepRunner {
 public:
  // Loads the weights (seconds for real models). `pool` must outlive the runner.
  ModelRunner(const Case& c, ThreadPool& pool);

  void step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
            StepObserver* observer) override;
  // The same with given tokens: `tokens` packed like `pieces`. Logits as Decoder::forward gives
  // them.
  Tensor forward(KvEngine& engine, std::span<const Piece> pieces, std::span<const int32_t> tokens,
                 Outputs outputs, StepObserver* observer);

  // Tokens [0, positions] of the text to score: positions + 1 tokens, so that each has a next one.
  const std::vector<int32_t>& score_tokens() const { return score_tokens_; }
  int64_t weight_bytes() const { return backend_->weight_bytes_held(); }

 private:
  void make_tokens(const Case& c, std::span<const int32_t> text);

  ModelConfig config_;
  std::unique_ptr<Backend> backend_;
  Weights weights_;
  std::unique_ptr<Decoder> decoder_;
  bool greedy_ = false;
  size_t prompt_rows_ = 1;
  std::vector<std::vector<int32_t>> tokens_;  // [sequence][position]
  std::vector<int32_t> score_tokens_;
  std::vector<int32_t> packed_, argmax_;  // scratch of a step
};

// The attention of every layer on synthetic q, k and v. With `repeat_kv` each KV head's rows are
// copied to all query heads that read it.
class AttentionRunner : public StepRunner {
 public:
  AttentionRunner(const Case& c, ThreadPool& pool);

  void stage(int first, int rows) override;
  // As in a decoder, every layer but the last computes all rows of `outputs` last.
  void step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
            StepObserver* observer) override;

 private:
  struct Rows {  // of one layer: (positions staged, sequences, cols)
    std::vector<float> q, k, v;
  };
  void fill_row(int layer, int sequence, int position, float* q, float* k, float* v) const;
  void attend_staged(KvEngine& engine, int layer, std::span<const Piece> pieces, Outputs outputs);
  void store(KvEngine& engine, int layer, std::span<const Piece> pieces);
  Tensor pack(std::span<const Piece> pieces, std::vector<float>& staged, int cols,
              std::vector<float>& scratch) const;

  const KvSpec spec_;  // as stored
  const int repeat_;   // stored copies of a KV head
  SyntheticAttention synthetic_;
  ThreadPool& pool_;
  int batch_;
  int first_ = 0, staged_ = 0;
  std::vector<Rows> rows_;  // by layer
  std::vector<float> q_, k_, v_, out_;
};

}  // namespace kvmark
