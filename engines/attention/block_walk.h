// The stored rows of one item of attention, in the order in which they are worked on.
#pragma once

#include <span>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/layouts/span.h"

namespace kvmark {

// Goes through positions block by block (of kBlock positions, at fixed places) and in each block
// through some neighbouring KV heads. Names for every run what to prefetch: the tiles that come so
// many runs later in this order.
class BlockWalk {
 public:
  // One block of positions under one KV head.
  struct Step {
    int first;  // position, a multiple of kBlock
    int head;   // counted from the walk's first one
    int rows;   // positions of the block that hold a row
    std::span<const TileRun> k, v;
  };
  static constexpr int kMaxAhead = 16;

  // For walks under up to `heads` KV heads. k_ahead, v_ahead: runs between what is read and what is
  // prefetched, ≤ kMaxAhead.
  BlockWalk(int heads, int k_ahead, int v_ahead);

  // Over positions [first, last) of `spans` (ascending; they must outlive the walk) under the KV
  // heads [kv_head, kv_head + heads).
  void start(std::span<const Span> spans, int kv_head, int heads, int first, int last);
  // The next step if its block lies in front of position `end`, a multiple of kBlock; else null.
  // It stays until the second call from there.
  const Step* next(int end) {
    if (next_step_ == last_step_ && !go_on()) return nullptr;
    return next_step_->first < end ? next_step_++ : nullptr;
  }

 private:
  // Consecutive slots within one tile, under the walk's first head.
  struct Rows {
    const std::byte *k, *v;  // their tiles
    int64_t head_bytes;
    int k_slot, v_slot;  // within the tile
    int count, at;       // as in TileRun
  };
  // Some blocks, enough for what is ahead of their last runs to lie in the next list.
  struct List {
    std::vector<TileRun> k, v;
    std::vector<Step> steps;
    int run_count = 0, step_count = 0;
  };

  bool find_row(int before);
  void enter_span(const Span& span);
  void enter_memory_block();
  Rows take_rows(int before);
  int whole_blocks_here() const;
  void list_whole_blocks(List& list, int blocks);
  void list_block(List& list);
  void fill(List& list);
  bool go_on();

  const int k_ahead_, v_ahead_;
  int kv_head_ = 0, heads_ = 0, last_ = 0;

  // Where the listing stands.
  const Span* span_ = nullptr;
  std::span<const Span> later_spans_;
  int position_ = 0, span_end_ = 0;
  int memory_block_ = 0, slot_ = 0;              // slot_: within the block of memory
  const std::byte *k_ = nullptr, *v_ = nullptr;  // the first head's tiles there
  int k_shift_ = 0, v_shift_ = 0;                // log2 of the rows of a tile

  // The list that is given out, the one behind it, and the one before, whose last step may still be
  // in use: each takes the place of the one in front of it.
  List lists_[3];
  int current_ = 0;
  const Step *next_step_ = nullptr, *last_step_ = nullptr;  // of the current list
};

}  // namespace kvmark
