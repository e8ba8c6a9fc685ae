#include "engines/attention/attention.h"

#include <algorithm>
#include <bit>
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

// What is prefetched lies so many bytes behind what is read, in each of the two streams: enough to
// cover the memory's latency, little enough to stay in the first-level cache. At least the two runs
// of a block, which are read together.
constexpr int64_t kPrefetchBytes = 4096;
constexpr int kMinAhead = 2;
constexpr int kMaxAhead = 16;

int runs_ahead(const TileSpec& tile) {
  const int64_t run_bytes = tile.bytes * kTileRows / tile.tokens;
  return static_cast<int>(std::clamp<int64_t>(kPrefetchBytes / run_bytes, kMinAhead, kMaxAhead));
}

// Visits positions [first, last) in runs of up to kTileRows slots that lie in one block of memory
// and in one block of positions.
// visit(position of the run's first row, its keys, its values).
template <typename Visit>
void for_each_run(std::span<const Span> spans, int head, int first, int last, Visit visit) {
  for (const Span& span : spans) {
    int from = std::max(first, span.first_position);
    const int to = std::min(last, span.first_position + span.count);
    // Tiles hold a divisor of kTileRows, a power of two; divisions would take longer than a run.
    const int k_shift = std::countr_zero(static_cast<unsigned>(span.k_tokens));
    const int v_shift = std::countr_zero(static_cast<unsigned>(span.v_tokens));
    while (from < to) {
      // Along one block the addresses only grow: what is slow is looked up once for it.
      int slot = span.first_slot + from - span.first_position;
      const int block_end = std::min(to, from + span.block_slots - slot % span.block_slots);
      const std::byte* block = span.block(slot);
      const std::byte* k = block + head * span.k_head_bytes;
      const std::byte* v = block + span.v_offset + head * span.v_head_bytes;
      slot %= span.block_slots;
      while (from < block_end) {
        const int rows =
            std::min({block_end - from, kTileRows - slot % kTileRows, kBlock - from % kBlock});
        const auto run = [&](const std::byte* tiles, int shift, int64_t tile_bytes) {
          return TileRun{.tiles = tiles + (slot >> shift) * tile_bytes,
                         .first_slot = slot & ((1 << shift) - 1),
                         .rows = rows,
                         .at = from % kBlock};
        };
        visit(from, run(k, k_shift, span.k_tile_bytes), run(v, v_shift, span.v_tile_bytes));
        from += rows;
        slot += rows;
      }
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
      q_floats_(static_cast<int>(k.prepared_floats(shape.k_dim))),
      k_ahead_(runs_ahead(k.k.tile(shape.k_dim))),
      v_ahead_(runs_ahead(v.v.tile(shape.v_dim))),
      pool_(pool) {
  check(group_ > 0 && group_ * shape.kv_heads == shape.heads && shape.k_dim > 0 && shape.v_dim > 0,
        "attention of {} query heads over {} KV heads, k_dim {}, v_dim {}", shape.heads,
        shape.kv_heads, shape.k_dim, shape.v_dim);
  check(max_rows > 0 && max_len > 0, "attention for {} rows of {} positions", max_rows, max_len);

  for (int thread = 0; thread < pool.threads(); ++thread) scratch_.push_back(make_scratch());
  item_end_.reserve(max_rows);
  row_end_.reserve(max_rows);

  const int64_t parts = int64_t{part_rows_} * shape.heads * ceil_div(max_len, kSplit);
  part_states_ = Buffer(sizeof(AttentionState) * parts);
  part_outputs_ = Buffer(sizeof(float) * parts * shape.v_dim);
}

AttentionDriver::Scratch AttentionDriver::make_scratch() const {
  Scratch scratch;
  const int64_t queries = max_queries_;
  struct Part {
    float** at;
    int64_t floats;
  };
  const Part parts[] = {
      {&scratch.q, queries * q_floats_},
      {&scratch.s, queries * kBlock},
      {&scratch.o, queries * shape_.v_dim},
      {&scratch.l, queries * kTileRows},
      {&scratch.m, queries},
      {&scratch.total, queries * shape_.v_dim},
      {&scratch.rows, int64_t{kBlock + 1} * std::max(shape_.k_dim, shape_.v_dim)}};
  const auto on_cache_lines = [](int64_t floats) { return (floats + 15) / 16 * 16; };
  int64_t floats = 0;
  for (const Part& part : parts) floats += on_cache_lines(part.floats);
  scratch.memory = Buffer(sizeof(float) * floats);
  float* next = scratch.memory.as<float>();
  for (const Part& part : parts) {
    *part.at = next;
    next += on_cache_lines(part.floats);
  }
  scratch.totals.resize(queries);
  // A span's ends and blocks may cut runs down to one row.
  scratch.k_runs.resize(kSplit + kTileRows * kMaxAhead);
  scratch.v_runs.resize(kSplit + kTileRows * kMaxAhead);
  scratch.positions.resize(kSplit + kTileRows * kMaxAhead);
  return scratch;
}

void AttentionDriver::attend(std::span<const QueryPiece> pieces) {
  plan(pieces);
  const int items = item_end_.empty() ? 0 : item_end_.back();
  const int rows = row_end_.empty() ? 0 : row_end_.back();
  const bool apart = splits_ > 1 && rows <= part_rows_ && items < kItemsPerThread * pool_.threads();
  if (apart) return attend_apart(pieces, items);
  pool_.run(items,
            [&](int index, int thread) { attend_whole(item_at(pieces, index), scratch_[thread]); });
}

// Each thread takes ranges of neighbouring splits, through which it reads on without a pause.
void AttentionDriver::attend_apart(std::span<const QueryPiece> pieces, int items) {
  const int units = items * splits_;
  const int ranges = std::min(units, kItemsPerThread * pool_.threads());
  pool_.run(ranges, [&](int index, int thread) {
    Scratch& scratch = scratch_[thread];
    int prepared = -1;
    for (int unit = units * int64_t{index} / ranges; unit < units * int64_t{index + 1} / ranges;
         ++unit) {
      const Item item = item_at(pieces, unit / splits_);
      if (unit % splits_ >= splits_of(item)) continue;
      if (unit / splits_ != prepared) prepare_queries(item, scratch);
      prepared = unit / splits_;
      attend_part(item, unit % splits_, scratch);
    }
  });
  pool_.run(items,
            [&](int index, int thread) { merge_parts(item_at(pieces, index), scratch_[thread]); });
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

int AttentionDriver::splits_of(const Item& item) const { return ceil_div(item.visible(), kSplit); }

void AttentionDriver::prepare_queries(const Item& item, Scratch& scratch) const {
  for (int i = 0; i < item.rows * group_; ++i) {
    const int64_t head =
        int64_t{item.first_row + i / group_} * shape_.heads + item.kv_head * group_ + i % group_;
    k_.prepare(item.piece->q + head * shape_.k_dim, shape_.k_dim,
               scratch.q + int64_t{i} * q_floats_);
  }
}

// The runs of positions [first, last), and how many those are: behind them stand the runs that are
// prefetched only.
int AttentionDriver::list_runs(const Item& item, int first, int last, Scratch& scratch) const {
  const int seen = std::min(item.visible(), last + kTileRows * std::max(k_ahead_, v_ahead_));
  TileRun* k_runs = scratch.k_runs.data();
  TileRun* v_runs = scratch.v_runs.data();
  int* positions = scratch.positions.data();
  int all = 0, count = 0;
  for_each_run(item.piece->spans, item.kv_head, first, seen,
               [&](int position, const TileRun& k, const TileRun& v) {
                 k_runs[all] = k;
                 v_runs[all] = v;
                 positions[all++] = position;
                 count += position < last;
               });
  for (int i = 0; i + k_ahead_ < all && i < count; ++i)
    k_runs[i].ahead = k_runs[i + k_ahead_].tiles;
  for (int i = 0; i + v_ahead_ < all && i < count; ++i)
    v_runs[i].ahead = v_runs[i + v_ahead_].tiles;
  return count;
}

// The rows of one block of positions from `first` on, which are `runs` of the scratch's runs from
// `from` on, into the states of the queries that see them.
void AttentionDriver::attend_block(const Item& item, int first, int from, int runs,
                                   Scratch& scratch) const {
  // Queries in front of the block see none of it.
  const int skipped = std::max(0, first - item.first_position());
  const int rows = item.rows - skipped;
  const int64_t query = int64_t{skipped} * group_;
  const int queries = rows * group_;
  float* s = scratch.s + query * kBlock;
  const SoftmaxStates states{scratch.m + query, scratch.l + query * kTileRows,
                             scratch.o + query * shape_.v_dim, shape_.v_dim};
  int covered = 0;
  for (int i = from; i < from + runs; ++i) covered += scratch.k_runs[i].rows;
  if (covered < kBlock) std::fill_n(s, int64_t{queries} * kBlock, kEmpty.m);
  k_.scores(scratch.q + query * q_floats_, queries, shape_.k_dim,
            {&scratch.k_runs[from], size_t(runs)}, s, scratch.rows);
  softmax_.block(s, rows, group_, item.first_position() + skipped + 1 - first, states);
  v_.accumulate(s, queries, shape_.v_dim, {&scratch.v_runs[from], size_t(runs)}, states.o,
                scratch.rows);
}

// One split into m, l and o of the scratch, o divided by the sum.
void AttentionDriver::attend_split(const Item& item, int split, Scratch& scratch) const {
  const int queries = item.rows * group_;
  std::fill_n(scratch.m, queries, kEmpty.m);
  std::fill_n(scratch.l, int64_t{queries} * kTileRows, 0.0f);
  std::fill_n(scratch.o, int64_t{queries} * shape_.v_dim, 0.0f);
  const int begin = split * kSplit, end = std::min((split + 1) * kSplit, item.visible());
  const int count = list_runs(item, begin, end, scratch);
  for (int from = 0, to = 0; from < count; from = to) {
    const int block = scratch.positions[from] / kBlock;
    while (to < count && scratch.positions[to] / kBlock == block) ++to;
    attend_block(item, block * kBlock, from, to - from, scratch);
  }
  softmax_.finish(queries, {scratch.m, scratch.l, scratch.o, shape_.v_dim});
}

void AttentionDriver::attend_whole(const Item& item, Scratch& scratch) const {
  const int queries = item.rows * group_;
  prepare_queries(item, scratch);
  std::fill_n(scratch.totals.begin(), queries, kEmpty);
  std::fill_n(scratch.total, int64_t{queries} * shape_.v_dim, 0.0f);
  for (int split = 0; split < splits_of(item); ++split) {
    attend_split(item, split, scratch);
    for (int i = 0; i < queries; ++i) {
      const int64_t at = int64_t{i} * shape_.v_dim;
      merge_states(scratch.totals[i], scratch.total + at, split_state(scratch, i), scratch.o + at,
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

void AttentionDriver::attend_part(const Item& item, int split, Scratch& scratch) {
  attend_split(item, split, scratch);
  for (int i = 0; i < item.rows * group_; ++i) {
    const int64_t part = part_index(item, i, split);
    part_states_.as<AttentionState>()[part] = split_state(scratch, i);
    std::copy_n(scratch.o + int64_t{i} * shape_.v_dim, shape_.v_dim,
                part_outputs_.as<float>() + part * shape_.v_dim);
  }
}

void AttentionDriver::merge_parts(const Item& item, Scratch& scratch) const {
  const int queries = item.rows * group_;
  std::fill_n(scratch.totals.begin(), queries, kEmpty);
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
