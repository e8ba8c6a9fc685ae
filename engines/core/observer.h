// What a step tells whoever watches it: the profiler, NVTX, the verifier.
#pragma once

#include <span>

#include "engines/core/tensor.h"

namespace kvmark {

// The phases of a step; a phase lasts until the next one is entered.
enum class Phase { other, qkv, append, attend, out, ffn, lm_head };
inline constexpr int kPhases = 7;

struct Piece;  // kv_engine.h

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Called by the decoder and by the engine when a phase begins.
  virtual void enter(Phase) {}
  // Called by the decoder before each layer.
  virtual void enter_layer(int /*layer*/) {}
  // Called by KvEngine::attend after the outputs of `layer` stand in `out` (on the CPU: computed).
  // q, k and v are as the decoder gave them, before RoPE: (fed rows, heads · k_dim), (fed rows,
  // kv_heads · k_dim), (fed rows, kv_heads · v_dim). `out`: (rows that wanted an output, heads ·
  // v_dim). The engine's rows of this layer can be read() from here.
  virtual void attended(int /*layer*/, Outputs, std::span<const Piece>, Tensor /*q*/, Tensor /*k*/,
                        Tensor /*v*/, Tensor /*out*/) {}
};

}  // namespace kvmark
