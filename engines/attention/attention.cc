#include "engines/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/codecs/simd.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

static_assert(kSplit % kBlock == 0);

constexpr AttentionState kEmpty{-std::numeric_limits<float>::infinity(), 0.0f};

// So many queries share one decoding of a row; more would push their outputs out of L1 and L2.
constexpr int kQueriesWanted = 64;
// Fewer waste the decoding, but small steps need their rows spread over the threads.
constexpr int kQueriesAtLeast = 16;
// Items a thread, so that the last ones even out.
constexpr int kItemsPerThread = 4;

int ceil_div(int a, int b) { return (a + b - 1) / b; }
int rows_for(int queries, int group) { return std::max(1, queries / group); }

// Visits positions [first, last) in runs that lie in one block of memory.
// visit(span, slot, rows, offset): `offset` positions behind `first`.
template <typename Visit>
void for_each_run(std::span<const Span> spans, int first, int last, Visit visit) {
  for (const Span& span : spans) {
    int from = std::max(first, span.first_position);
    const int to = std::min(last, span.first_position + span.count);
    while (from < to) {
      const int slot = span.first_slot + from - span.first_position;
      const int rows = std::min(to - from, span.block_slots - slot % span.block_slots);
      visit(span, slot, rows, from - first);
      from += rows;
    }
  }
}

void check_spans(std::span<const Span> spans) {
  int end = 0;
  for (const Span& span : spans) {
    check(span.first_position >= end && span.count >= 0,
          "attention: a span of positions [{}, +{}) behind position {}: expected ascending spans",
          span.first_position, span.count, end);
    end = span.first_position + span.count;
  }
}

}  // namespace

void merge_states(AttentionState& a, float* o_a, const AttentionState& b, const float* o_b,
                  int dim) {
  if (b.l == 0) return;
  if (a.l == 0) {
    a = b;
    std::copy_n(o_b, dim, o_a);
    return;
  }
  const float m = std::max(a.m, b.m);
  const float from_a = a.l * std::exp(a.m - m);
  const float from_b = b.l * std::exp(b.m - m);
  const float l = from_a + from_b;
  const float weight_a = from_a / l;
  const float weight_b = from_b / l;
  for (int d = 0; d < dim; ++d) o_a[d] = o_a[d] * weight_a + o_b[d] * weight_b;
  a = {m, l};
}

AttentionDriver::AttentionDriver(const AttentionShape& shape, const Codec& k, const Codec& v,
                                 int max_rows, int max_len, ThreadPool& pool)
    : shape_(shape),
      k_(k),
      v_(v),
      softmax_(softmax_kernels(chosen_simd_target())),
      group_(shape.kv_heads > 0 ? shape.heads / shape.kv_heads : 0),
      max_rows_(max_rows),
      max_len_(max_len),
      max_queries_(group_ > 0 ? rows_for(kQueriesWanted, group_) * group_ : 0),
      part_rows_(
          pool.threads() == 1 || group_ == 0
              ? 0
              : std::min(max_rows, ceil_div(kItemsPerThread * pool.threads(), shape.kv_heads))),
      pool_(pool) {
  check(group_ > 0 && group_ * shape.kv_heads == shape.heads && shape.k_dim > 0 && shape.v_dim > 0,
        "attention of {} query heads over {} KV heads, k_dim {}, v_dim {}", shape.heads,
        shape.kv_heads, shape.k_dim, shape.v_dim);
  check(max_rows > 0 && max_len > 0, "attention for {} rows of {} positions", max_rows, max_len);

  const int64_t state_floats = sizeof(AttentionState) / sizeof(float);
  const int64_t per_query = shape.k_dim + kBlock + 2 * shape.v_dim + 2 * state_floats;
  const int64_t floats = max_queries_ * per_query + kBlock * std::max(shape.k_dim, shape.v_dim);
  scratch_floats_ = (floats + 15) / 16 * 16 + 16;  // no cache line belongs to two threads
  scratch_ = Buffer(sizeof(float) * scratch_floats_ * pool.threads());
  item_end_.reserve(max_rows);
  row_end_.reserve(max_rows);

  const int64_t parts = int64_t{part_rows_} * shape.heads * ceil_div(max_len, kSplit);
  part_states_ = Buffer(sizeof(AttentionState) * parts);
  part_outputs_ = Buffer(sizeof(float) * parts * shape.v_dim);
}

void AttentionDriver::attend(std::span<const QueryPiece> pieces) {
  plan(pieces);
  const int items = item_end_.empty() ? 0 : item_end_.back();
  const int rows = row_end_.empty() ? 0 : row_end_.back();
  const bool apart = splits_ > 1 && rows <= part_rows_ && items < kItemsPerThread * pool_.threads();
  if (!apart) {
    pool_.run(items, [&](int index, int thread) {
      attend_whole(item_at(pieces, index), scratch_of(thread));
    });
    return;
  }
  pool_.run(items * splits_, [&](int index, int thread) {
    attend_part(item_at(pieces, index / splits_), index % splits_, scratch_of(thread));
  });
  pool_.run(items, [&](int index, int thread) {
    merge_parts(item_at(pieces, index), scratch_of(thread));
  });
}

void AttentionDriver::plan(std::span<const QueryPiece> pieces) {
  int rows = 0;
  splits_ = 0;
  row_end_.clear();
  item_end_.clear();
  check(pieces.size() <= size_t(max_rows_), "attention over {} pieces: made for {} rows",
        pieces.size(), max_rows_);
  for (const QueryPiece& piece : pieces) {
    const int end = piece.first_position + piece.rows;
    check(piece.first_position >= 0 && piece.rows >= 0 && end <= max_len_,
          "attention of rows at positions [{}, {}): made for {}", piece.first_position, end,
          max_len_);
    check_spans(piece.spans);
    rows += piece.rows;
    row_end_.push_back(rows);
    if (piece.rows > 0) splits_ = std::max(splits_, ceil_div(end, kSplit));
  }
  check(rows <= max_rows_, "attention of {} rows: made for {}", rows, max_rows_);

  const int even_share = static_cast<int>(int64_t{rows} * shape_.kv_heads /
                                          (int64_t{kItemsPerThread} * pool_.threads()));
  row_block_ =
      std::clamp(even_share, rows_for(kQueriesAtLeast, group_), rows_for(kQueriesWanted, group_));
  int items = 0;
  for (const QueryPiece& piece : pieces) {
    items += ceil_div(piece.rows, row_block_) * shape_.kv_heads;
    item_end_.push_back(items);
  }
}

AttentionDriver::Item AttentionDriver::item_at(std::span<const QueryPiece> pieces,
                                               int index) const {
  const auto found = std::upper_bound(item_end_.begin(), item_end_.end(), index);
  const auto number = static_cast<size_t>(found - item_end_.begin());
  const QueryPiece& piece = pieces[number];
  // Counted from the piece's end: rows that see most come first, so that the threads end together.
  const int from_end = *found - 1 - index;
  const int first_row = from_end / shape_.kv_heads * row_block_;
  return {.piece = &piece,
          .step_row = row_end_[number] - piece.rows,
          .kv_head = shape_.kv_heads - 1 - from_end % shape_.kv_heads,
          .first_row = first_row,
          .rows = std::min(row_block_, piece.rows - first_row)};
}

AttentionDriver::Scratch AttentionDriver::scratch_of(int thread) {
  float* next = scratch_.as<float>() + thread * scratch_floats_;
  const auto take = [&next](int64_t floats) {
    float* taken = next;
    next += floats;
    return taken;
  };
  Scratch scratch;
  scratch.s = take(int64_t{max_queries_} * kBlock);  // first: on a cache line
  scratch.rows = take(int64_t{kBlock} * std::max(shape_.k_dim, shape_.v_dim));
  scratch.q = take(int64_t{max_queries_} * shape_.k_dim);
  scratch.o = take(int64_t{max_queries_} * shape_.v_dim);
  scratch.total = take(int64_t{max_queries_} * shape_.v_dim);
  scratch.states = reinterpret_cast<AttentionState*>(take(int64_t{max_queries_} * 2));
  scratch.totals = reinterpret_cast<AttentionState*>(take(int64_t{max_queries_} * 2));
  return scratch;
}

int AttentionDriver::splits_of(const Item& item) const { return ceil_div(item.visible(), kSplit); }

void AttentionDriver::pack_queries(const Item& item, const Scratch& scratch) const {
  for (int row = 0; row < item.rows; ++row) {
    const int64_t head = int64_t{item.first_row + row} * shape_.heads + item.kv_head * group_;
    std::copy_n(item.piece->q + head * shape_.k_dim, int64_t{group_} * shape_.k_dim,
                scratch.q + int64_t{row} * group_ * shape_.k_dim);
  }
}

// Positions [first, last) of one block into the states and outputs of the queries that see them.
void AttentionDriver::attend_block(const Item& item, int first, int last,
                                   const Scratch& scratch) const {
  // Rows in front of the block see none of it.
  const int skipped = std::max(0, first - item.first_position()) * group_;
  const int queries = item.rows * group_ - skipped;
  float* s = scratch.s + int64_t{skipped} * kBlock;
  float* o = scratch.o + int64_t{skipped} * shape_.v_dim;

  std::fill_n(s, int64_t{queries} * kBlock, kEmpty.m);
  for_each_run(item.piece->spans, first, last, [&](const Span& span, int slot, int rows, int at) {
    const TileRun run{span.k_tile(item.kv_head, slot), slot % span.k_tokens, rows};
    k_.scores(scratch.q + int64_t{skipped} * shape_.k_dim, shape_.k_dim, queries, shape_.k_dim, run,
              s + at, kBlock, scratch.rows);
  });
  for (int i = 0; i < queries; ++i) {
    const int position = item.first_position() + (skipped + i) / group_;
    AttentionState& state = scratch.states[skipped + i];
    const int visible = std::min(position + 1 - first, kBlock);
    const float factor = softmax_.block(s + int64_t{i} * kBlock, visible, &state.m, &state.l);
    if (factor != 1.0f) softmax_.scale(o + int64_t{i} * shape_.v_dim, shape_.v_dim, factor);
  }
  for_each_run(item.piece->spans, first, last, [&](const Span& span, int slot, int rows, int at) {
    const TileRun run{span.v_tile(item.kv_head, slot), slot % span.v_tokens, rows};
    v_.accumulate(s + at, kBlock, queries, shape_.v_dim, run, o, shape_.v_dim, scratch.rows);
  });
}

// One split into scratch.states and scratch.o.
void AttentionDriver::attend_split(const Item& item, int split, const Scratch& scratch) const {
  const int queries = item.rows * group_;
  std::fill_n(scratch.states, queries, kEmpty);
  std::fill_n(scratch.o, int64_t{queries} * shape_.v_dim, 0.0f);
  const int end = std::min((split + 1) * kSplit, item.visible());
  for (int first = split * kSplit; first < end; first += kBlock) {
    attend_block(item, first, std::min(first + kBlock, end), scratch);
  }
  for (int i = 0; i < queries; ++i) {
    const float l = scratch.states[i].l;
    if (l > 0) softmax_.scale(scratch.o + int64_t{i} * shape_.v_dim, shape_.v_dim, 1.0f / l);
  }
}

void AttentionDriver::attend_whole(const Item& item, const Scratch& scratch) const {
  const int queries = item.rows * group_;
  pack_queries(item, scratch);
  std::fill_n(scratch.totals, queries, kEmpty);
  std::fill_n(scratch.total, int64_t{queries} * shape_.v_dim, 0.0f);
  for (int split = 0; split < splits_of(item); ++split) {
    attend_split(item, split, scratch);
    for (int i = 0; i < queries; ++i) {
      const int64_t at = int64_t{i} * shape_.v_dim;
      merge_states(scratch.totals[i], scratch.total + at, scratch.states[i], scratch.o + at,
                   shape_.v_dim);
    }
  }
  write_out(item, scratch);
}

int64_t AttentionDriver::part_index(const Item& item, int query, int split) const {
  const int row = item.step_row + item.first_row + query / group_;
  const int head = item.kv_head * group_ + query % group_;
  return (int64_t{row} * shape_.heads + head) * splits_ + split;
}

void AttentionDriver::attend_part(const Item& item, int split, const Scratch& scratch) {
  if (split >= splits_of(item)) return;
  pack_queries(item, scratch);
  attend_split(item, split, scratch);
  for (int i = 0; i < item.rows * group_; ++i) {
    const int64_t part = part_index(item, i, split);
    part_states_.as<AttentionState>()[part] = scratch.states[i];
    std::copy_n(scratch.o + int64_t{i} * shape_.v_dim, shape_.v_dim,
                part_outputs_.as<float>() + part * shape_.v_dim);
  }
}

void AttentionDriver::merge_parts(const Item& item, const Scratch& scratch) const {
  const int queries = item.rows * group_;
  std::fill_n(scratch.totals, queries, kEmpty);
  std::fill_n(scratch.total, int64_t{queries} * shape_.v_dim, 0.0f);
  for (int i = 0; i < queries; ++i) {
    for (int split = 0; split < splits_of(item); ++split) {
      const int64_t part = part_index(item, i, split);
      merge_states(scratch.totals[i], scratch.total + int64_t{i} * shape_.v_dim,
                   part_states_.as<AttentionState>()[part],
                   part_outputs_.as<float>() + part * shape_.v_dim, shape_.v_dim);
    }
  }
  write_out(item, scratch);
}

void AttentionDriver::write_out(const Item& item, const Scratch& scratch) const {
  for (int row = 0; row < item.rows; ++row) {
    const int64_t head = int64_t{item.first_row + row} * shape_.heads + item.kv_head * group_;
    float* out = item.piece->out + head * shape_.v_dim;
    const float* total = scratch.total + int64_t{row} * group_ * shape_.v_dim;
    // Whether a rounded-away output is +0 or −0 may depend on rows of probability 0: both become
    // +0.
    for (int d = 0; d < group_ * shape_.v_dim; ++d) out[d] = total[d] + 0.0f;
  }
}

}  // namespace kvmark
