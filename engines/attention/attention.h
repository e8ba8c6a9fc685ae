// Attention of packed query rows over stored rows, for every layout and codec.
//
// One driver owns mask, softmax, GQA, splits and merge; a codec brings `scores` and `accumulate`.
// The softmax is computed online, block by block, with f32 states (Milakov & Gimelshein, 2018; Dao et
// al., "FlashAttention", 2022); splits are merged as in FlashInfer and Flash-Decoding.
#pragma once

#include <span>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/core/tensor.h"
#include "engines/core/thread_pool.h"
#include "engines/layouts/span.h"

namespace kvmark {

// Partial attention over some rows: m = max score, l = Σ e^(score − m), o = Σ e^(score − m) · v / l.
// Nothing seen yet: m = −inf, l = 0, o = 0.
struct AttentionState {
  float m;
  float l;
};

// Merges state b with output o_b into state a with output o_a (dim floats each). Merging with an
// empty state changes nothing; two empty states stay empty.
void merge_states(AttentionState& a, float* o_a, const AttentionState& b, const float* o_b, int dim);

// The queries of one sequence in a step: rows at positions first_position + i, each sees the rows of
// `spans` at positions ≤ its own. q: (rows, heads · k_dim), after RoPE and scaled by 1/√k_dim;
// out: (rows, heads · v_dim). A row that sees nothing gets zeros.
struct QueryPiece {
  std::span<const Span> spans;
  int first_position = 0;
  int rows = 0;
  const float* q = nullptr;
  float* out = nullptr;
};

struct AttentionShape {
  int heads = 0, kv_heads = 0, k_dim = 0, v_dim = 0;
};

class AttentionDriver {
 public:
  // Scratch for each thread of `pool` and split states for up to `max_rows` rows of up to `max_len`
  // positions are allocated here; attend() allocates nothing.
  AttentionDriver(const AttentionShape& shape, const Codec& k, const Codec& v, int max_rows,
                  int max_len, ThreadPool& pool);

  // The result of a row depends only on its own q and on the stored bytes that it sees: not on the
  // other rows, the pieces, the threads or the physical place of the rows, bit for bit.
  void attend(std::span<const QueryPiece> pieces);

 private:
  // As the implementation needs.
};

// The yardstick: softmax(q·kᵀ/√k_dim)·v in double with an explicit mask, one row, one query head.
// k: (visible, k_dim) rows with `k_stride` floats between them, v likewise; q: after RoPE, not
// scaled; out: v_dim doubles. visible = 0 gives zeros.
void attend_reference(const double* q, int k_dim, const float* k, int k_stride, const float* v,
                      int v_stride, int v_dim, int visible, double* out);

// Rotates one head row in double (reference) or float (engine).
void rope_reference(const Rope& rope, int position, int dim, double* row);

}  // namespace kvmark
