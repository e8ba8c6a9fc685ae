// Attention of packed query rows over stored rows, for every layout and codec.
//
// One driver owns mask, softmax, GQA, splits and merge; a codec brings `scores` and `accumulate`.
// The softmax is computed online, block by block, with f32 states (Milakov & Gimelshein, 2018; Dao
// et al., "FlashAttention", 2022); splits are merged as in FlashInfer and Flash-Decoding.
#pragma once

#include <span>
#include <vector>

#include "engines/attention/block_walk.h"
#include "engines/attention/rope.h"
#include "engines/attention/softmax.h"
#include "engines/codecs/codec.h"
#include "engines/core/buffer.h"
#include "engines/core/tensor.h"
#include "engines/core/thread_pool.h"
#include "engines/layouts/span.h"

namespace kvmark {

// The queries of one sequence in a step: rows at positions first_position + i, each sees the rows
// of `spans` (ascending positions; there may be gaps between spans) at positions ≤ its own. q:
// (rows, heads · k_dim), before the QueryPass; out: (rows, heads · v_dim). A row that sees nothing
// gets zeros.
struct QueryPiece {
  std::span<const Span> spans;
  int first_position = 0;
  int rows = 0;
  const float* q = nullptr;
  float* out = nullptr;
};

// What queries go through before they meet the keys: rotary embedding, where `rope` is not null (it
// must outlive the driver, hold all positions up to max_len and rotate at most k_dim channels), and
// a factor, 1/√k_dim unless q has it already.
struct QueryPass {
  const RopeTable* rope = nullptr;
  float scale = 1.0f;
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
  // positions are allocated here; attend() allocates nothing. Throws LogicError for shapes that are
  // not positive or where kv_heads does not divide heads.
  AttentionDriver(const AttentionShape& shape, const Codec& k, const Codec& v, int max_rows,
                  int max_len, ThreadPool& pool, const QueryPass& pass = {});

  // The result of a row depends only on its own q and on the stored bytes that it sees: not on the
  // other rows, the pieces, the threads or the physical place of the rows, bit for bit, as long as
  // the stored rows of their blocks are finite. Outputs must not overlap queries. Throws LogicError
  // for more rows or positions than the driver was made for, and for spans that do not ascend.
  void attend(std::span<const QueryPiece> pieces);

 private:
  // The work of one thread at a time: some rows of a piece under some neighbouring KV heads, which
  // are kv_heads · rows · group queries, in the order of heads, then of rows.
  struct Item {
    const QueryPiece* piece;
    int step_row;  // of the piece's first row among all rows of the call
    int kv_head, kv_heads;
    int first_row, rows;  // within the piece

    int first_position() const { return piece->first_position + first_row; }
    int visible() const { return first_position() + rows; }  // positions that the last row sees
  };
  struct QueryAt {
    int row;   // within the piece
    int head;  // of the query heads
  };
  // A block of positions under one KV head, and the rows of an item that see some of it.
  struct Block {
    const BlockWalk::Step* step = nullptr;
    int query = 0;    // the item's first one that sees it
    int rows = 0;     // from that query's on
    int visible = 0;  // positions of the block that the first of them sees, or more
  };
  // One thread's memory, for up to max_queries_ queries.
  struct Scratch {
    explicit Scratch(BlockWalk&& of_runs) : walk(std::move(of_runs)) {}
    BlockWalk walk;
    Buffer memory;           // of the floats below
    float* q = nullptr;      // (queries, q_floats_): prepared
    float* p[2] = {};        // (queries, kBlock): of a block and the one before; see attend_blocks
    float* o = nullptr;      // (queries, v_dim): of one split
    float* l = nullptr;      // (queries, kTileRows): of one split, see SoftmaxStates
    float* m = nullptr;      // (queries): of one split
    float* total = nullptr;  // (queries, v_dim): of the splits so far
    float* rows = nullptr;  // (max(kBlock + 1, group), max(k_dim, v_dim)): decoded rows, or queries
    std::vector<AttentionState> totals;
  };

  void plan(std::span<const QueryPiece> pieces);
  bool may_go_apart(int rows) const;
  int heads_in_turns(std::span<const QueryPiece> pieces, int rows) const;
  Item item_at(std::span<const QueryPiece> pieces, int index) const;
  Scratch make_scratch() const;
  int splits_of(const Item& item) const;
  int queries_of(const Item& item) const;
  QueryAt query_at(const Item& item, int query) const;
  const float* query(const Item& item, int index) const;
  float* output(const Item& item, int index) const;
  Block block_of(const Item& item, const BlockWalk::Step& step) const;
  SoftmaxStates states_of(const Block& block, const Scratch& scratch) const;

  void prepare_queries(const Item& item, Scratch& scratch) const;
  void score(const Block& block, float* s, Scratch& scratch) const;
  void add_values(const Block& block, const float* p, Scratch& scratch) const;
  void attend_blocks(const Item& item, int end, Scratch& scratch) const;
  template <typename Done>
  void attend_splits(const Item& item, int first, int splits, Scratch& scratch,
                     const Done& done) const;

  void attend_whole(const Item& item, Scratch& scratch) const;
  void attend_apart(std::span<const QueryPiece> pieces, int items);
  void attend_parts(const Item& item, int first, int splits, Scratch& scratch);
  void merge_parts(const Item& item, Scratch& scratch) const;
  void write_out(const Item& item, const Scratch& scratch) const;
  AttentionState split_state(const Scratch& scratch, int query) const {
    return {scratch.m[query], scratch.l[query * kTileRows]};
  }
  int64_t part_index(const Item& item, int query, int split) const;

  const AttentionShape shape_;
  const Codec& k_;
  const Codec& v_;
  const QueryPass pass_;
  const RotateHeads rotate_;
  const SoftmaxKernels softmax_;
  const int group_;  // query heads of a KV head
  const int max_rows_, max_len_;
  const int max_queries_;  // of an item
  const int part_rows_;    // rows of a call whose splits may be worked on apart
  const int q_floats_;     // of a prepared query
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;  // by thread

  // Of the call.
  int row_block_ = 1;           // rows of an item
  int turns_ = 1;               // KV heads of an item
  int splits_ = 0;              // of the longest piece
  std::vector<int> item_end_;   // by piece: items up to its end
  std::vector<int> row_end_;    // by piece: rows up to its end
  std::vector<int> range_end_;  // of splits worked on apart, by range: splits up to its end

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
