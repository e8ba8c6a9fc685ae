#include "engines/attention/attention.h"

#include <algorithm>
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
// Where one head's keys and values in a block of memory are fewer bytes than this, several heads of
// a block of positions are worked on before the next positions: reads stay longer in one place.
constexpr int64_t kShortRunBytes = 131072;
// Queries and outputs of the heads that take turns, so that they stay in the first-level cache.
constexpr int64_t kTurnBytes = 32768;
// Items a thread, so that the last ones even out.
constexpr int kItemsPerThread = 4;

// Rows of queries between the one that is prepared and the one that is prefetched.
constexpr int kPreparedAhead = 4;

// For __builtin_prefetch.
constexpr int kToRead = 0, kToWrite = 1;

template <int kPurpose>
void prefetch_lines(const float* from, int64_t floats) {
  constexpr int64_t kLineFloats = 16;
  for (int64_t i = 0; i < floats; i += kLineFloats) __builtin_prefetch(from + i, kPurpose);
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }
int rows_for(int queries, int group) { return std::max(1, queries / group); }

// What is prefetched lies so many bytes behind what is read, in each of the two streams: enough to
// cover the memory's latency, little enough to stay in the first-level cache. At least the two runs
// of a block, which are read together.
constexpr int64_t kPrefetchBytes = 8192;
constexpr int kMinAhead = 2;

int runs_ahead(const TileSpec& tile) {
  const int64_t run_bytes = tile.bytes * kTileRows / tile.tokens;
  return static_cast<int>(
      std::clamp<int64_t>(kPrefetchBytes / run_bytes, kMinAhead, BlockWalk::kMaxAhead));
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

AttentionDriver::AttentionDriver(const AttentionShape& shape, const Codec& k, const Codec& v,
                                 int max_rows, int max_len, ThreadPool& pool, const QueryPass& pass)
    : shape_(shape),
      k_(k),
      v_(v),
      pass_(pass),
      rotate_(rotate_heads(chosen_simd_target())),
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
      pool_(pool) {
  check(group_ > 0 && group_ * shape.kv_heads == shape.heads && shape.k_dim > 0 && shape.v_dim > 0,
        "attention of {} query heads over {} KV heads, k_dim {}, v_dim {}", shape.heads,
        shape.kv_heads, shape.k_dim, shape.v_dim);
  check(max_rows > 0 && max_len > 0, "attention for {} rows of {} positions", max_rows, max_len);

  for (int thread = 0; thread < pool.threads(); ++thread) scratch_.push_back(make_scratch());
  item_end_.reserve(max_rows);
  row_end_.reserve(max_rows);
  // Each range leaves at most (1 − 1 / (2 · threads)) of the splits: at most as many as 2 · threads
  // times their natural logarithm, and 2 · threads more.
  range_end_.reserve(2 * pool.threads() * 32);

  const int64_t parts = int64_t{part_rows_} * shape.heads * ceil_div(max_len, kSplit);
  part_states_ = Buffer(sizeof(AttentionState) * parts);
  part_outputs_ = Buffer(sizeof(float) * parts * shape.v_dim);
}

AttentionDriver::Scratch AttentionDriver::make_scratch() const {
  const int most_turns = std::min(shape_.kv_heads, std::max(1, max_queries_ / group_));
  Scratch scratch(BlockWalk(most_turns, runs_ahead(k_.k.tile(shape_.k_dim)),
                            runs_ahead(v_.v.tile(shape_.v_dim))));
  const int64_t queries = max_queries_;
  struct Part {
    float** at;
    int64_t floats;
  };
  const Part parts[] = {{&scratch.q, queries * q_floats_},
                        {&scratch.p[0], queries * kBlock},
                        {&scratch.p[1], queries * kBlock},
                        {&scratch.o, queries * shape_.v_dim},
                        {&scratch.l, queries * kTileRows},
                        {&scratch.m, queries},
                        {&scratch.total, queries * shape_.v_dim},
                        {&scratch.rows, int64_t{std::max(kBlock + 1, group_)} *
                                            std::max(shape_.k_dim, shape_.v_dim)}};
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
  return scratch;
}

void AttentionDriver::attend(std::span<const QueryPiece> pieces) {
  plan(pieces);
  const int items = item_end_.empty() ? 0 : item_end_.back();
  const int rows = row_end_.empty() ? 0 : row_end_.back();
  if (may_go_apart(rows) && items < kItemsPerThread * pool_.threads()) {
    return attend_apart(pieces, items);
  }
  pool_.run(items,
            [&](int index, int thread) { attend_whole(item_at(pieces, index), scratch_[thread]); });
}

// Each thread takes ranges of neighbouring splits, through which it reads on without a pause: long
// ones first, and single splits at the end, so that the threads end together.
void AttentionDriver::attend_apart(std::span<const QueryPiece> pieces, int items) {
  const int units = items * splits_;
  range_end_.clear();
  for (int end = 0; end < units;) {
    end += ceil_div(units - end, 2 * pool_.threads());
    range_end_.push_back(end);
  }
  pool_.run(static_cast<int>(range_end_.size()), [&](int index, int thread) {
    const int end = range_end_[index];
    int unit = index > 0 ? range_end_[index - 1] : 0;
    while (unit < end) {
      const int item = unit / splits_;
      const int splits = std::min(end, (item + 1) * splits_) - unit;
      attend_parts(item_at(pieces, item), unit % splits_, splits, scratch_[thread]);
      unit += splits;
    }
  });
  pool_.run(items,
            [&](int index, int thread) { merge_parts(item_at(pieces, index), scratch_[thread]); });
}

void AttentionDriver::plan(std::span<const QueryPiece> pieces) {
  int rows = 0, most_rows = 0;
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
    most_rows = std::max(most_rows, piece.rows);
    row_end_.push_back(rows);
    if (piece.rows > 0) splits_ = std::max(splits_, ceil_div(end, kSplit));
  }
  check(rows <= max_rows_, "attention of {} rows: made for {}", rows, max_rows_);

  const int even_share = static_cast<int>(int64_t{rows} * shape_.kv_heads /
                                          (int64_t{kItemsPerThread} * pool_.threads()));
  row_block_ =
      std::clamp(even_share, rows_for(kQueriesAtLeast, group_), rows_for(kQueriesWanted, group_));
  row_block_ = std::clamp(most_rows, 1, row_block_);
  turns_ = heads_in_turns(pieces, rows);
  int items = 0;
  for (const QueryPiece& piece : pieces) {
    items += ceil_div(piece.rows, row_block_) * ceil_div(shape_.kv_heads, turns_);
    item_end_.push_back(items);
  }
}

bool AttentionDriver::may_go_apart(int rows) const { return splits_ > 1 && rows <= part_rows_; }

// KV heads of an item: more than one where one head's rows are no long run of memory, and where
// every thread gets its share all the same.
int AttentionDriver::heads_in_turns(std::span<const QueryPiece> pieces, int rows) const {
  int64_t run_bytes = std::numeric_limits<int64_t>::max();
  for (const QueryPiece& piece : pieces) {
    for (const Span& span : piece.spans) run_bytes = std::min(run_bytes, span.head_bytes);
  }
  if (run_bytes >= kShortRunBytes) return 1;
  const int queries = row_block_ * group_;
  const int64_t query_bytes = sizeof(float) * (q_floats_ + shape_.v_dim);
  const int64_t room = std::min<int64_t>(max_queries_, kTurnBytes / query_bytes) / queries;
  int64_t share = shape_.kv_heads;
  if (pool_.threads() > 1) {
    int64_t units = 0;
    for (const QueryPiece& piece : pieces) units += ceil_div(piece.rows, row_block_);
    units *= shape_.kv_heads * (may_go_apart(rows) ? splits_ : 1);
    share = units / (int64_t{kItemsPerThread} * pool_.threads());
  }
  return static_cast<int>(std::clamp<int64_t>(std::min(room, share), 1, shape_.kv_heads));
}

AttentionDriver::Item AttentionDriver::item_at(std::span<const QueryPiece> pieces,
                                               int index) const {
  const auto found = std::upper_bound(item_end_.begin(), item_end_.end(), index);
  const auto number = static_cast<size_t>(found - item_end_.begin());
  const QueryPiece& piece = pieces[number];
  // Counted from the piece's end: rows that see most come first, so that the threads end together.
  const int from_end = *found - 1 - index;
  const int parts = ceil_div(shape_.kv_heads, turns_);
  const int first_row = from_end / parts * row_block_;
  const int kv_head = (parts - 1 - from_end % parts) * turns_;
  return {.piece = &piece,
          .step_row = row_end_[number] - piece.rows,
          .kv_head = kv_head,
          .kv_heads = std::min(turns_, shape_.kv_heads - kv_head),
          .first_row = first_row,
          .rows = std::min(row_block_, piece.rows - first_row)};
}

int AttentionDriver::splits_of(const Item& item) const { return ceil_div(item.visible(), kSplit); }

int AttentionDriver::queries_of(const Item& item) const {
  return item.kv_heads * item.rows * group_;
}

// A query of an item: its row within the piece, and its head.
AttentionDriver::QueryAt AttentionDriver::query_at(const Item& item, int query) const {
  const int of_head = item.rows * group_;
  return {.row = item.first_row + query % of_head / group_,
          .head = (item.kv_head + query / of_head) * group_ + query % group_};
}

const float* AttentionDriver::query(const Item& item, int index) const {
  const auto [row, head] = query_at(item, index);
  return item.piece->q + (int64_t{row} * shape_.heads + head) * shape_.k_dim;
}

float* AttentionDriver::output(const Item& item, int index) const {
  const auto [row, head] = query_at(item, index);
  return item.piece->out + (int64_t{row} * shape_.heads + head) * shape_.v_dim;
}

void AttentionDriver::prepare_queries(const Item& item, Scratch& scratch) const {
  const int queries = queries_of(item);
  float* passed = scratch.rows;  // (group, k_dim): of one row
  for (int i = 0; i < queries; i += group_) {
    const int ahead = i + kPreparedAhead * group_;
    if (ahead < queries) prefetch_lines<kToRead>(query(item, ahead), group_ * shape_.k_dim);
    const int position = item.piece->first_position + query_at(item, i).row;
    rotate_(query(item, i), group_, shape_.k_dim,
            pass_.rope ? pass_.rope->at(position) : Rotation(), pass_.scale, passed);
    for (int head = 0; head < group_; ++head) {
      k_.prepare(passed + int64_t{head} * shape_.k_dim, shape_.k_dim,
                 scratch.q + int64_t{i + head} * q_floats_);
    }
  }
}

// What a step of the walk is to the queries that see some of it: those of its head but for the rows
// in front of the block.
inline AttentionDriver::Block AttentionDriver::block_of(const Item& item,
                                                        const BlockWalk::Step& step) const {
  const int skipped = std::max(0, step.first - item.first_position());
  return {.step = &step,
          .query = (step.head * item.rows + skipped) * group_,
          .rows = item.rows - skipped,
          .visible = item.first_position() + skipped + 1 - step.first};
}

inline SoftmaxStates AttentionDriver::states_of(const Block& block, const Scratch& scratch) const {
  return {.m = scratch.m + block.query,
          .l = scratch.l + int64_t{block.query} * kTileRows,
          .o = scratch.o + int64_t{block.query} * shape_.v_dim,
          .dim = shape_.v_dim};
}

// s: (queries, kBlock); −inf where there is no row or it is not visible.
inline void AttentionDriver::score(const Block& block, float* s, Scratch& scratch) const {
  const int queries = block.rows * group_;
  if (block.step->rows < kBlock) std::fill_n(s, int64_t{queries} * kBlock, kEmpty.m);
  k_.scores(scratch.q + int64_t{block.query} * q_floats_, queries, shape_.k_dim, block.step->k, s,
            scratch.rows);
  for (int row = 0; row < block.rows && block.visible + row < kBlock; ++row) {
    for (int i = row * group_; i < (row + 1) * group_; ++i) {
      std::fill(s + i * kBlock + block.visible + row, s + (i + 1) * kBlock, kEmpty.m);
    }
  }
}

inline void AttentionDriver::add_values(const Block& block, const float* p,
                                        Scratch& scratch) const {
  v_.accumulate(p, block.rows * group_, shape_.v_dim, block.step->v,
                scratch.o + int64_t{block.query} * shape_.v_dim, scratch.rows);
}

// Splits [first, first + splits): calls done(split) when its states are in m, l and o of the
// scratch, o divided by the sum.
template <typename Done>
void AttentionDriver::attend_splits(const Item& item, int first, int splits, Scratch& scratch,
                                    const Done& done) const {
  const int queries = queries_of(item);
  const int last = std::min(first + splits, splits_of(item));
  if (first >= last) return;
  prepare_queries(item, scratch);
  scratch.walk.start(item.piece->spans, item.kv_head, item.kv_heads, first * kSplit,
                     std::min(last * kSplit, item.visible()));
  for (int split = first; split < last; ++split) {
    std::fill_n(scratch.m, queries, kEmpty.m);
    std::fill_n(scratch.l, int64_t{queries} * kTileRows, 0.0f);
    std::fill_n(scratch.o, int64_t{queries} * shape_.v_dim, 0.0f);
    attend_blocks(item, (split + 1) * kSplit, scratch);
    softmax_.finish(queries, {scratch.m, scratch.l, scratch.o, shape_.v_dim});
    done(split);
  }
}

// The blocks in front of `end` into the states. Values are added one block late: the softmax of a
// block is a long chain of operations, beside which the processor can add the block before.
void AttentionDriver::attend_blocks(const Item& item, int end, Scratch& scratch) const {
  Block before;
  float *p = scratch.p[0], *p_before = scratch.p[1];
  const auto add_before = [&] {
    if (before.step) add_values(before, p_before, scratch);
    before.step = nullptr;
  };
  while (const BlockWalk::Step* step = scratch.walk.next(end)) {
    const Block block = block_of(item, *step);
    const int queries = block.rows * group_;
    score(block, p, scratch);
    const SoftmaxStates states = states_of(block, scratch);
    if (softmax_.exceeds(p, queries, states)) {
      add_before();  // its probabilities are for the old reference
      softmax_.raise(p, queries, states);
    }
    softmax_.block(p, queries, states);
    add_before();
    before = block;
    std::swap(p, p_before);
  }
  add_before();
}

void AttentionDriver::attend_whole(const Item& item, Scratch& scratch) const {
  const int queries = queries_of(item);
  std::fill_n(scratch.totals.begin(), queries, kEmpty);
  std::fill_n(scratch.total, int64_t{queries} * shape_.v_dim, 0.0f);
  // Written at the end, and far until then.
  for (int i = 0; i < queries; i += group_) {
    prefetch_lines<kToWrite>(output(item, i), group_ * shape_.v_dim);
  }
  attend_splits(item, 0, splits_of(item), scratch, [&](int /*split*/) {
    for (int i = 0; i < queries; ++i) {
      const int64_t at = int64_t{i} * shape_.v_dim;
      softmax_.merge(scratch.totals[i], scratch.total + at, split_state(scratch, i), scratch.o + at,
                     shape_.v_dim);
    }
  });
  write_out(item, scratch);
}

int64_t AttentionDriver::part_index(const Item& item, int query, int split) const {
  const auto [row, head] = query_at(item, query);
  return (int64_t{item.step_row + row} * shape_.heads + head) * splits_ + split;
}

void AttentionDriver::attend_parts(const Item& item, int first, int splits, Scratch& scratch) {
  attend_splits(item, first, splits, scratch, [&](int split) {
    for (int i = 0; i < queries_of(item); ++i) {
      const int64_t part = part_index(item, i, split);
      part_states_.as<AttentionState>()[part] = split_state(scratch, i);
      std::copy_n(scratch.o + int64_t{i} * shape_.v_dim, shape_.v_dim,
                  part_outputs_.as<float>() + part * shape_.v_dim);
    }
  });
}

void AttentionDriver::merge_parts(const Item& item, Scratch& scratch) const {
  const int queries = queries_of(item);
  std::fill_n(scratch.totals.begin(), queries, kEmpty);
  std::fill_n(scratch.total, int64_t{queries} * shape_.v_dim, 0.0f);
  for (int i = 0; i < queries; ++i) {
    for (int split = 0; split < splits_of(item); ++split) {
      const int64_t part = part_index(item, i, split);
      softmax_.merge(scratch.totals[i], scratch.total + int64_t{i} * shape_.v_dim,
                     part_states_.as<AttentionState>()[part],
                     part_outputs_.as<float>() + part * shape_.v_dim, shape_.v_dim);
    }
  }
  write_out(item, scratch);
}

void AttentionDriver::write_out(const Item& item, const Scratch& scratch) const {
  for (int i = 0; i < queries_of(item); ++i) {
    float* out = output(item, i);
    const float* total = scratch.total + int64_t{i} * shape_.v_dim;
    // Whether a rounded-away output is +0 or −0 may depend on rows of probability 0: both become
    // +0.
    for (int d = 0; d < shape_.v_dim; ++d) out[d] = total[d] + 0.0f;
  }
}

}  // namespace kvmark
