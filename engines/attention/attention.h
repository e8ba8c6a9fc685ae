// Attention of packed query rows over stored rows, for every layout and codec.
//
// One driver owns mask, softmax, GQA, splits and merge; a codec brings `scores` and `accumulate`.
// The softmax is computed online, block by block, with f32 states (Milakov & Gimelshein, 2018; Dao
// et al., "FlashAttention", 2022); splits are merged as in FlashInfer and Flash-Decoding.
#pragma once

#include <span>
#include <vector>

#include "engines/attention/softmax.h"
#include "engines/codecs/codec.h"
#include "engines/core/buffer.h"
#include "engines/core/tensor.h"
#include "engines/core/thread_pool.h"
#include "engines/layouts/span.h"

namespace kvmark {

// Partial attention over some rows: m = max score, l = Σ e^(score − m), o = Σ e^(score − m) · v /
// l. Nothing seen yet: m = −inf, l = 0, o = 0.
struct AttentionState {
  float m;
  float l;
};

// Merges state b with output o_b into state a with output o_a (dim floats each). Merging with an
// empty state changes nothing; two empty states stay empty.
void merge_states(AttentionState& a, float* o_a, const AttentionState& b, const float* o_b,
                  int dim);

// The queries of one sequence in a step: rows at positions first_position + i, each sees the rows
// of `spans` (ascending positions; there may be gaps between spans) at positions ≤ its own. q:
// (rows, heads · k_dim), after RoPE and scaled by 1/√k_dim; out: (rows, heads · v_dim). A row that
// sees nothing gets zeros.
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

// Work is split at fixed absolute positions, multiples of kSplit; each split has its own softmax
// state, and the states are merged in ascending order, whether one thread did them all or not.
inline constexpr int kSplit = 1024;

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
  // The work of one thread at a time: some rows of a piece under one KV head, which are
  // rows · group queries, in the order of rows.
  struct Item {
    const QueryPiece* piece;
    int step_row;  // of the piece's first row among all rows of the call
    int kv_head;
    int first_row, rows;  // within the piece

    int first_position() const { return piece->first_position + first_row; }
    int visible() const { return first_position() + rows; }  // positions that the last row sees
  };
  // One thread's memory, for up to max_queries_ queries.
  struct Scratch {
    Buffer memory;  // of the floats below
    float* q;       // (queries, q_floats_): prepared
    float* s;       // (queries, kBlock): scores, then probabilities
    float* o;       // (queries, v_dim): of one split
    float* l;       // (queries, kTileRows): of one split, see SoftmaxStates
    float* m;       // (queries): of one split
    float* total;   // (queries, v_dim): of the splits so far
    float* rows;    // (kBlock + 1, max(k_dim, v_dim)): decoded
    std::vector<AttentionState> totals;
    // Of one split, and behind them the runs that are prefetched only; as many as there may be.
    std::vector<TileRun> k_runs, v_runs;
    std::vector<int> positions;  // by run: of its first row
  };

  void plan(std::span<const QueryPiece> pieces);
  Item item_at(std::span<const QueryPiece> pieces, int index) const;
  Scratch make_scratch() const;
  int splits_of(const Item& item) const;
  void attend_apart(std::span<const QueryPiece> pieces, int items);

  void prepare_queries(const Item& item, Scratch& scratch) const;
  int list_runs(const Item& item, int first, int last, Scratch& scratch) const;
  void attend_block(const Item& item, int first, int from, int runs, Scratch& scratch) const;
  void attend_split(const Item& item, int split, Scratch& scratch) const;
  void write_out(const Item& item, const Scratch& scratch) const;
  void attend_whole(const Item& item, Scratch& scratch) const;
  void attend_part(const Item& item, int split, Scratch& scratch);
  void merge_parts(const Item& item, Scratch& scratch) const;
  AttentionState split_state(const Scratch& scratch, int query) const {
    return {scratch.m[query], scratch.l[query * kTileRows]};
  }
  int64_t part_index(const Item& item, int query, int split) const;

  const AttentionShape shape_;
  const Codec& k_;
  const Codec& v_;
  const SoftmaxKernels softmax_;
  const int group_;  // query heads of a KV head
  const int max_rows_, max_len_;
  const int max_queries_;        // of an item
  const int part_rows_;          // rows of a call whose splits may be worked on apart
  const int q_floats_;           // of a prepared query
  const int k_ahead_, v_ahead_;  // runs between what is read and what is prefetched
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;  // by thread

  // Of the call.
  int row_block_ = 1;          // rows of an item
  int splits_ = 0;             // of the longest piece
  std::vector<int> item_end_;  // by piece: items up to its end
  std::vector<int> row_end_;   // by piece: rows up to its end

  // Splits worked on apart, (row, head, split): states, and outputs of v_dim floats.
  Buffer part_states_, part_outputs_;
};

// The yardstick: softmax(q·kᵀ/√k_dim)·v in double with an explicit mask, one row, one query head.
// k: (visible, k_dim) rows with `k_stride` floats between them, v likewise; q: after RoPE, not
// scaled; out: v_dim doubles. visible = 0 gives zeros.
void attend_reference(const double* q, int k_dim, const float* k, int k_stride, const float* v,
                      int v_stride, int v_dim, int visible, double* out);

// Rotates the first rope.dims of the `dim` channels of one head row, in double; LogicError
// where there are fewer. Engines use RopeTable.
void rope_reference(const Rope& rope, int position, int dim, double* row);

}  // namespace kvmark
