// The decoder forward, written once for both families over the two seams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/core/backend.h"
#include "engines/core/kv_engine.h"
#include "engines/model/weights.h"

namespace kvmark {

class Decoder {
 public:
  // Allocates all activations for steps of up to `max_rows` rows, but the logits, which are
  // allocated in the first step that wants so many. `repeat_kv`: k and v are repeated to every
  // query head before the engine sees them (to show what that costs).
  Decoder(const ModelConfig& config, const Weights& weights, Backend& backend, int max_rows,
          bool repeat_kv = false);

  // One step: begin, all layers, commit. `tokens` are packed like `pieces`. Returns the logits
  // (rows | pieces, vocab) as `logits` says, empty for none, valid until the next call. The last
  // layer computes only the rows that are wanted. `observer`, where given, is also the engine's for
  // the time of the call. Throws RuntimeError when the engine refuses the step, a position lies
  // past learned positions or a token outside the vocabulary; whatever is thrown, the engine is as
  // before.
  Tensor forward(KvEngine& engine, std::span<const Piece> pieces, std::span<const int32_t> tokens,
                 Outputs logits, StepObserver* observer = nullptr);

  const ModelConfig& config() const { return config_; }

 private:
  void check_step(const KvEngine& engine, std::span<const Piece> pieces,
                  std::span<const int32_t> tokens) const;
  void embed(std::span<const Piece> pieces, std::span<const int32_t> tokens, Tensor x);
  void norm(Tensor x, const Weight& gain, const Weight& bias, Tensor y);
  Tensor attend(KvEngine& engine, int layer, Outputs outputs, std::span<const Piece> pieces,
                Tensor x);
  Tensor repeat(Tensor from, Tensor to);
  Tensor keep_wanted(Outputs outputs, std::span<const Piece> pieces, Tensor x);
  Tensor feed_forward(const LayerWeights& w, Tensor h);
  Tensor logits_of(int rows);

  const ModelConfig config_;
  const Weights& weights_;
  Backend& backend_;
  bool repeat_kv_;
  Tensor x_, h_;                    // (max_rows, d_model): the residual stream; a norm's output
  Tensor q_, attended_;             // (max_rows, heads · head_dim)
  Tensor k_, v_;                    // (max_rows, kv_heads · head_dim)
  Tensor k_repeated_, v_repeated_;  // (max_rows, heads · head_dim)
  Tensor gate_, up_;                // (max_rows, ffn)
  Tensor logits_;                   // (most rows asked for so far, vocab)
  std::vector<int> repeat_rows_;    // head row to read, for each repeated head row
  std::vector<int> wanted_;         // packed row that each piece ends with
  std::vector<int32_t> positions_;  // of each packed row, gpt2
};

}  // namespace kvmark
