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
  // Allocates all activations for steps of up to `max_rows` rows. `repeat_kv`: k and v are repeated
  // to every query head before the engine sees them (to show what that costs).
  Decoder(const ModelConfig& config, const Weights& weights, Backend& backend, int max_rows,
          bool repeat_kv = false);

  // One step: begin, all layers, commit. `tokens` are packed like `pieces`. Returns the logits
  // (rows | pieces, vocab) as `logits` says, empty for none, valid until the next call. The last
  // layer computes only the rows that are wanted. A refusal of begin() throws RuntimeError.
  Tensor forward(KvEngine& engine, std::span<const Piece> pieces, std::span<const int32_t> tokens,
                 Outputs logits, StepObserver* observer = nullptr);

  const ModelConfig& config() const { return config_; }

 private:
  const ModelConfig config_;
  const Weights& weights_;
  Backend& backend_;
  bool repeat_kv_;
};

}  // namespace kvmark
