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
void link(TileRun* runs, int count, const TileRun* later, int later_count, int ahead) {
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
  next_step_ = last_step_ = nullptr;
  fill(lists_[(current_ + 1) % 3]);
}

// Goes on to the next row, over gaps between the spans; false where none is in front of `before`.
inline bool BlockWalk::find_row(int before) {
  while (position_ == span_end_) {
    if (later_spans_.empty() || later_spans_[0].first_position >= before) return false;
    enter_span(later_spans_[0]);
    later_spans_ = later_spans_.subspan(1);
  }
  if (position_ >= before) return false;
  if (slot_ == span_->block_slots) {
    slot_ = 0;
    ++memory_block_;
    enter_memory_block();
  }
  return true;
}

void BlockWalk::enter_span(const Span& span) {
  const int end = span.first_position + span.count;
  if (end <= std::max(position_, span.first_position)) return;
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
  k_ = block + kv_head_ * span_->head_bytes;
  v_ = k_ + span_->v_offset;
}

// The run that starts at position_, which lies in a span and in front of `before`.
inline BlockWalk::Rows BlockWalk::take_rows(int before) {
  const int count = std::min({std::min(before, span_end_) - position_, span_->block_slots - slot_,
                              kTileRows - slot_ % kTileRows});
  const Rows rows{.k = k_ + (slot_ >> k_shift_) * span_->k_tile_bytes,
                  .v = v_ + (slot_ >> v_shift_) * span_->v_tile_bytes,
                  .head_bytes = span_->head_bytes,
                  .k_slot = slot_ & ((1 << k_shift_) - 1),
                  .v_slot = slot_ & ((1 << v_shift_) - 1),
                  .count = count,
                  .at = position_ % kBlock};
  position_ += count;
  slot_ += count;
  return rows;
}

// Whole blocks from position_ on whose rows fill tiles of one block of memory.
inline int BlockWalk::whole_blocks_here() const {
  if (position_ % kBlock != 0 || slot_ % kTileRows != 0) return 0;
  return std::min(std::min(last_, span_end_) - position_, span_->block_slots - slot_) / kBlock;
}

// What list_block() would list for so many of them, with no decision left to take in the
// loop: nearly all blocks are of this kind, and each costs the kernels what it takes.
void BlockWalk::list_whole_blocks(List& list, int blocks) {
  const int heads = heads_;
  const int64_t head_bytes = span_->head_bytes;
  const int64_t k_tiles = (kTileRows >> k_shift_) * span_->k_tile_bytes;  // of a run
  const int64_t v_tiles = (kTileRows >> v_shift_) * span_->v_tile_bytes;
  const std::byte* k = k_ + (slot_ >> k_shift_) * span_->k_tile_bytes;
  const std::byte* v = v_ + (slot_ >> v_shift_) * span_->v_tile_bytes;
  TileRun *k_runs = &list.k[list.run_count], *v_runs = &list.v[list.run_count];
  Step* step = &list.steps[list.step_count];
  int first = position_;
  for (int i = 0; i < blocks; ++i, first += kBlock) {
    for (int head = 0; head < heads; ++head) {
      *step++ = {first, head, kBlock, {k_runs, 2}, {v_runs, 2}};
      *k_runs++ = {.tiles = k + head * head_bytes, .rows = kTileRows};
      *k_runs++ = {.tiles = k + head * head_bytes + k_tiles, .rows = kTileRows, .at = kTileRows};
      *v_runs++ = {.tiles = v + head * head_bytes, .rows = kTileRows};
      *v_runs++ = {.tiles = v + head * head_bytes + v_tiles, .rows = kTileRows, .at = kTileRows};
    }
    k += 2 * k_tiles;
    v += 2 * v_tiles;
  }
  list.step_count += blocks * heads;
  list.run_count += 2 * blocks * heads;
  position_ += blocks * kBlock;
  slot_ += blocks * kBlock;
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
      k[i] = {.tiles = run.k + head * run.head_bytes,
              .first_slot = run.k_slot,
              .rows = run.count,
              .at = run.at};
      v[i] = {.tiles = run.v + head * run.head_bytes,
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
    const int room = (kListed - list.run_count + 2 * heads_ - 1) / (2 * heads_);
    const int blocks = std::min(whole_blocks_here(), room);
    blocks > 0 ? list_whole_blocks(list, blocks) : list_block(list);
  }
}

// Takes up the next list; false where there is none.
bool BlockWalk::go_on() {
  List& list = lists_[(current_ + 1) % 3];
  if (list.step_count == 0) return false;
  current_ = (current_ + 1) % 3;
  next_step_ = list.steps.data();
  last_step_ = next_step_ + list.step_count;
  List& later = lists_[(current_ + 1) % 3];
  fill(later);
  link(list.k.data(), list.run_count, later.k.data(), later.run_count, k_ahead_);
  link(list.v.data(), list.run_count, later.v.data(), later.run_count, v_ahead_);
  return true;
}

}  // namespace kvmark
