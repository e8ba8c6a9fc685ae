// Queries, keys and values for `level: attention`, where no model computes them.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/core/kv_engine.h"
#include "engines/core/tensor.h"

namespace kvmark {

// A function of (seed, layer, sequence index, position) alone, the same on every machine and
// however rows are cut into calls. Like a real model's: some key channels are outliers (×3–×8),
// keys of neighbouring positions are correlated, scores spread with a standard deviation of about
// 2, so that the softmax neither flattens nor collapses.
class SyntheticAttention {
 public:
  SyntheticAttention(const KvSpec& spec, uint64_t seed);

  // Rows at positions [first, first + rows) of sequence `index`. q: (rows, heads · k_dim), may be
  // empty (data null) where no output is wanted; k: (rows, kv_heads · k_dim); v: (rows, kv_heads ·
  // v_dim). Before RoPE. May be called from several threads at once, to cut a long fill.
  void fill(int layer, int index, int first, int rows, Tensor q, Tensor k, Tensor v) const;

 private:
  struct LayerScales {
    std::vector<float> key, query;  // of each channel of all heads
  };

  KvSpec spec_;
  uint64_t seed_;
  std::vector<LayerScales> layers_;
};

}  // namespace kvmark
