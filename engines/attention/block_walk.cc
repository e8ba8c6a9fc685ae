#include "engines/attention/block_walk.h"

#include <algorithm>
#include <bit>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// So many runs are listed at once, and up to a block more: few enough to stay in the first-level
// cache, not less than what is ahead of a run.
constexpr int kListed = 64;
static_assert(kListed >= BlockWalk::kMaxAhead);

// runs[i].ahead = the tiles of the run that comes `ahead` runs later, some of them in `later`.
void link(std::vector<TileRun>& runs, int count, const std::vector<TileRun>& later, int later_count,
          int ahead) {
  const int within = std::max(0, count - ahead);
  for (int i = 0; i < within; ++i) runs[i].ahead = runs[i + ahead].tiles;
  for (int i = within; i < count; ++i) {
    const int next = i + ahead - count;
    runs[i].ahead = next < later_count ? later[next].tiles : nullptr;
  }
}

}  // namespace

BlockWalk::BlockWalk(int heads, int k_ahead, int v_ahead) : k_ahead_(k_ahead), v_ahead_(v_ahead) {
  check(k_ahead <= kMaxAhead && v_ahead <= kMaxAhead,
        "a walk that prefetches {} and {} runs ahead: at most {}", k_ahead, v_ahead, kMaxAhead);
  // The runs of the last block may all have one row.
  const auto runs = static_cast<size_t>(kListed + heads * kBlock);
  for (List& list : lists_) {
    list.k.resize(runs);
    list.v.resize(runs);
    list.steps.resize(runs);
  }
}

void BlockWalk::start(std::span<const Span> spans, int kv_head, int heads, int first, int last) {
  kv_head_ = kv_head;
  heads_ = heads;
  last_ = last;
  later_spans_ = spans;
  position_ = span_end_ = first;
  next_step_ = 0;
  list(0).step_count = 0;
  fill(list(1));
}

// Goes on to the next row, over gaps between the spans; false where none is in front of `before`.
inline bool BlockWalk::find_row(int before) {
  while (position_ == span_end_) {
    if (later_spans_.empty() || later_spans_[0].first_position >= before) return false;
    enter_span(later_spans_[0]);
    later_spans_ = later_spans_.subspan(1);
  }
  return position_ < before;
}

void BlockWalk::enter_span(const Span& span) {
  const int end = span.first_position + span.count;
  if (end <= position_) return;
  span_ = &span;
  position_ = std::max(position_, span.first_position);
  span_end_ = end;
  // Tiles hold a divisor of kTileRows, a power of two; divisions would take longer than a run.
  k_shift_ = std::countr_zero(static_cast<unsigned>(span.k_tokens));
  v_shift_ = std::countr_zero(static_cast<unsigned>(span.v_tokens));
  const int slot = span.first_slot + position_ - span.first_position;
  memory_block_ = slot / span.block_slots;
  slot_ = slot % span.block_slots;
  enter_memory_block();
}

void BlockWalk::enter_memory_block() {
  const int index = span_->table ? span_->table[memory_block_] : memory_block_;
  const std::byte* block = span_->pool + int64_t{index} * span_->block_bytes;
  k_ = block + kv_head_ * span_->k_head_bytes;
  v_ = block + span_->v_offset + kv_head_ * span_->v_head_bytes;
}

// The run that starts at position_, which lies in a span and in front of `before`.
inline BlockWalk::Rows BlockWalk::take_rows(int before) {
  if (slot_ == span_->block_slots) {
    slot_ = 0;
    ++memory_block_;
    enter_memory_block();
  }
  const int count = std::min({std::min(before, span_end_) - position_, span_->block_slots - slot_,
                              kTileRows - slot_ % kTileRows});
  const Rows rows{.k = k_ + (slot_ >> k_shift_) * span_->k_tile_bytes,
                  .v = v_ + (slot_ >> v_shift_) * span_->v_tile_bytes,
                  .k_head_bytes = span_->k_head_bytes,
                  .v_head_bytes = span_->v_head_bytes,
                  .k_slot = slot_ & ((1 << k_shift_) - 1),
                  .v_slot = slot_ & ((1 << v_shift_) - 1),
                  .count = count,
                  .at = position_ % kBlock};
  position_ += count;
  slot_ += count;
  return rows;
}

const BlockWalk::Step* BlockWalk::next(int end) {
  if (next_step_ == list(0).step_count) {
    if (list(1).step_count == 0) return nullptr;
    current_ = (current_ + 1) % 3;
    next_step_ = 0;
    fill(list(1));
    link(list(0).k, list(0).run_count, list(1).k, list(1).run_count, k_ahead_);
    link(list(0).v, list(0).run_count, list(1).v, list(1).run_count, v_ahead_);
  }
  const Step& step = list(0).steps[next_step_];
  if (step.first >= end) return nullptr;
  ++next_step_;
  return &step;
}

// Whether the next block of positions is whole and lies in two tiles' rows of one block of memory.
inline bool BlockWalk::at_whole_block() const {
  return position_ % kBlock == 0 && slot_ % kTileRows == 0 &&
         std::min(last_, span_end_) - position_ >= kBlock && span_->block_slots - slot_ >= kBlock;
}

// What list_block() would list, in a third of its time.
inline void BlockWalk::list_whole_block(List& list) {
  const int64_t k_tile = (slot_ >> k_shift_) * span_->k_tile_bytes;
  const int64_t v_tile = (slot_ >> v_shift_) * span_->v_tile_bytes;
  const int64_t k_next = (kTileRows >> k_shift_) * span_->k_tile_bytes;
  const int64_t v_next = (kTileRows >> v_shift_) * span_->v_tile_bytes;
  for (int head = 0; head < heads_; ++head) {
    const std::byte* k_tiles = k_ + head * span_->k_head_bytes + k_tile;
    const std::byte* v_tiles = v_ + head * span_->v_head_bytes + v_tile;
    TileRun *k = &list.k[list.run_count], *v = &list.v[list.run_count];
    k[0] = {.tiles = k_tiles, .rows = kTileRows};
    k[1] = {.tiles = k_tiles + k_next, .rows = kTileRows, .at = kTileRows};
    v[0] = {.tiles = v_tiles, .rows = kTileRows};
    v[1] = {.tiles = v_tiles + v_next, .rows = kTileRows, .at = kTileRows};
    list.steps[list.step_count++] = {position_, head, kBlock, {k, 2}, {v, 2}};
    list.run_count += 2;
  }
  position_ += kBlock;
  slot_ += kBlock;
}

// Lists the block of the row that find_row() found.
void BlockWalk::list_block(List& list) {
  const int first = position_ - position_ % kBlock;
  const int end = std::min(first + kBlock, last_);
  Rows rows[kBlock];
  int count = 0, covered = 0;
  do {
    rows[count] = take_rows(end);
    covered += rows[count++].count;
  } while (find_row(end));
  for (int head = 0; head < heads_; ++head) {
    TileRun *k = &list.k[list.run_count], *v = &list.v[list.run_count];
    for (int i = 0; i < count; ++i) {
      const Rows& run = rows[i];
      k[i] = {.tiles = run.k + head * run.k_head_bytes,
              .first_slot = run.k_slot,
              .rows = run.count,
              .at = run.at};
      v[i] = {.tiles = run.v + head * run.v_head_bytes,
              .first_slot = run.v_slot,
              .rows = run.count,
              .at = run.at};
    }
    const auto runs = static_cast<size_t>(count);
    list.steps[list.step_count++] = {first, head, covered, {k, runs}, {v, runs}};
    list.run_count += count;
  }
}

void BlockWalk::fill(List& list) {
  list.run_count = list.step_count = 0;
  while (list.run_count < kListed && find_row(last_)) {
    at_whole_block() ? list_whole_block(list) : list_block(list);
  }
}

}  // namespace kvmark
