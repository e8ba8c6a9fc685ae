#include "engines/cpu/cpu_engine.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/attention/rope.h"
#include "engines/catalog/catalog.h"
#include "engines/catalog/store_spec.h"
#include "engines/codecs/simd.h"
#include "engines/core/buffer.h"
#include "engines/cpu/cpu_engine_append.h"
#include "engines/cpu/fork.h"
#include "engines/layouts/paged_store.h"
#include "engines/layouts/workspace_store.h"

namespace kvmark {
namespace {

std::unique_ptr<RowStore> make_store(const EngineSpec& engine, const KvSpec& spec,
                                     const CpuEngineOptions& options) {
  StoreSpec store = store_spec(engine, spec);
  store.poison = options.poison;
  switch (engine.layout) {
    case LayoutKind::recompute:
      return std::make_unique<WorkspaceStore>(store);
    case LayoutKind::contiguous:
      return std::make_unique<ContiguousStore>(store, capacity_rule(engine, spec));
    case LayoutKind::paged: {
      const bool shuffled = options.pool_order == PoolOrder::shuffled;
      return std::make_unique<PagedStore>(
          store, engine.block, shuffled ? std::optional<uint64_t>(options.seed) : std::nullopt);
    }
  }
  throw LogicError("EngineSpec: unknown layout");
}

class CpuEngine : public KvEngine {
 public:
  CpuEngine(const EngineSpec& engine, const KvSpec& spec, ThreadPool& pool,
            const CpuEngineOptions& options)
      : KvEngine(spec),
        engine_(engine),
        pool_(pool),
        k_(*find_codec(engine.k_codec)),
        v_(*find_codec(engine.v_codec)),
        rope_(spec.rope ? std::optional<RopeTable>(std::in_place, *spec.rope, spec.max_len)
                        : std::nullopt),
        rotate_(rotate_heads(chosen_simd_target())),
        store_(make_store(engine, spec, options)),
        appender_(spec, k_, v_, rope_ ? &*rope_ : nullptr, pool),
        driver_({spec.heads, spec.kv_heads, spec.k_dim, spec.v_dim}, k_, v_, spec.max_rows,
                spec.max_len, pool),
        q_(static_cast<size_t>(spec.max_rows) * static_cast<size_t>(q_cols()) * sizeof(float)) {
    const auto seqs = static_cast<size_t>(spec.max_seqs);
    spans_.reserve(seqs);
    queries_.reserve(seqs);
    last_rows_.reserve(seqs);
    positions_.reserve(static_cast<size_t>(spec.max_rows));
  }

  std::string kernel() const override {
    if (k_.kernel == v_.kernel) return std::string(k_.kernel);
    return fmt::format("k={},v={}", k_.kernel, v_.kernel);
  }
  double tolerance() const override { return std::max(k_.tolerance, v_.tolerance); }
  StoredBound stored_bound() const override { return {k_.stored_bound, v_.stored_bound}; }

 protected:
  bool keeps_rows() const override { return store_->keeps_rows(); }
  void do_open(SeqId seq) override { store_->open(seq); }
  void do_fork(SeqId from, SeqId to, int length) override { store_->fork(from, to, length); }
  void do_close(SeqId seq) override { store_->close(seq); }
  std::optional<Refusal> do_truncate(SeqId seq, int length) override {
    store_->truncate(seq, length);
    return std::nullopt;
  }
  std::optional<Refusal> do_begin(std::span<const Piece> pieces) override;
  void do_attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out) override;
  bool do_finite() override { return appender_.finite(); }
  void do_commit() override {
    store_->commit();
    saturated_ += appender_.saturated();
  }
  void do_rollback() override { store_->rollback(); }
  void do_read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const override;
  Footprint do_footprint() const override;
  std::vector<Event> do_take_events() override { return store_->take_events(); }

 private:
  int q_cols() const { return spec().heads * spec().k_dim; }
  void rotate_queries(Outputs outputs, Tensor q, int wanted);
  void plan_queries(Outputs outputs, Tensor out);

  const EngineSpec engine_;
  ThreadPool& pool_;
  const Codec& k_;
  const Codec& v_;
  std::optional<RopeTable> rope_;
  const RotateHeads rotate_;
  std::unique_ptr<RowStore> store_;
  RowAppender appender_;
  AttentionDriver driver_;
  Buffer q_;  // (wanted rows, heads · k_dim), rotated and scaled

  // Of the open step.
  std::vector<int> positions_;       // by fed row
  std::vector<int> last_rows_;       // by piece: its last fed row
  std::vector<Span> spans_;          // by piece: its sequence in the layer at hand
  std::vector<QueryPiece> queries_;  // by piece
  int stored_layer_ = -1;            // the layer attended last, also after the step
  int64_t saturated_ = 0;
};

std::optional<Refusal> CpuEngine::do_begin(std::span<const Piece> pieces) {
  if (auto refusal = store_->begin(pieces)) return refusal;
  appender_.plan(pieces);
  positions_.clear();
  last_rows_.clear();
  for (const Piece& piece : pieces) {
    for (int i = 0; i < piece.rows; ++i) positions_.push_back(piece.first + i);
    last_rows_.push_back(static_cast<int>(positions_.size()) - 1);
  }
  stored_layer_ = -1;
  return std::nullopt;
}

void CpuEngine::do_attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out) {
  enter(Phase::append);
  spans_.clear();
  for (const Piece& piece : pieces()) {
    spans_.push_back(store_->rows(piece.seq, layer, piece.first + piece.rows));
  }
  appender_.append(spans_, k, v);
  stored_layer_ = layer;
  if (outputs == Outputs::none) return;

  enter(Phase::attend);
  rotate_queries(outputs, q, out.rows);
  plan_queries(outputs, out);
  driver_.attend(queries_);
}

// q_(i, ·) = rope(q of the i-th row that wants an output) / √k_dim; q itself belongs to the caller.
void CpuEngine::rotate_queries(Outputs outputs, Tensor q, int wanted) {
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec().k_dim)));
  const int threads = threads_worth(pool_, int64_t{wanted} * q_cols());
  // To hand out single rows would take as long as to rotate them.
  const int block = std::max(1, ceil_div(wanted, kPartsPerThread * threads));
  run_on(threads, pool_, ceil_div(wanted, block), [&](int index, int /*thread*/) {
    for (int i = index * block; i < std::min(wanted, (index + 1) * block); ++i) {
      const int row = outputs == Outputs::all ? i : last_rows_[static_cast<size_t>(i)];
      rotate_(q.row(row), spec().heads, spec().k_dim,
              rope_ ? rope_->at(positions_[static_cast<size_t>(row)]) : Rotation(), scale,
              q_.as<float>() + int64_t{i} * q_cols());
    }
  });
}

void CpuEngine::plan_queries(Outputs outputs, Tensor out) {
  queries_.clear();
  int row = 0;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Piece& piece = pieces()[i];
    const int rows = outputs == Outputs::all ? piece.rows : 1;
    queries_.push_back({.spans = {&spans_[i], 1},
                        .first_position = piece.first + piece.rows - rows,
                        .rows = rows,
                        .q = q_.as<float>() + int64_t{row} * q_cols(),
                        .out = out.row(row)});
    row += rows;
  }
}

void CpuEngine::do_read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const {
  check(keeps_rows() || layer == stored_layer_,
        "read() of layer {}: an engine without a cache holds only layer {}, the last attended",
        layer, stored_layer_);
  const Span span = store_->rows(seq, layer, first + rows);
  for (int i = 0; i < rows; ++i) {
    const int slot = span.first_slot + first + i - span.first_position;
    for (int head = 0; head < spec().kv_heads; ++head) {
      k_.k.decode(span.k_tile(head, slot), slot % span.k_tokens, spec().k_dim,
                  k.row(i) + int64_t{head} * spec().k_dim);
      v_.v.decode(span.v_tile(head, slot), slot % span.v_tokens, spec().v_dim,
                  v.row(i) + int64_t{head} * spec().v_dim);
    }
  }
}

Footprint CpuEngine::do_footprint() const {
  const HeldBytes held = store_->held();
  const LiveBytes live = live_bytes(engine_, spec(), committed_rows());
  return {.live_bytes = live.payload + live.scales,
          .reserved_bytes = held.reserved,
          .peak_bytes = held.peak,
          .payload_bytes = live.payload,
          .scale_bytes = live.scales,
          .table_bytes = held.table,
          .blocks_used = held.blocks_used,
          .blocks_free = held.blocks_free,
          .saturated = saturated_};
}

}  // namespace

std::unique_ptr<KvEngine> make_cpu_engine(const EngineSpec& engine, const KvSpec& spec,
                                          ThreadPool& pool, const CpuEngineOptions& options) {
  if (const auto refusal = check_engine(engine, spec)) throw UsageError(refusal->reason);
  try {
    return std::make_unique<CpuEngine>(engine, spec, pool, options);
  } catch (const std::bad_alloc&) {
    throw RuntimeError(
        fmt::format("engine `{}`: no memory for its tables and scratch ({} sequences "
                    "of {} positions, {} rows a step)",
                    engine.name(), spec.max_seqs, spec.max_len, spec.max_rows));
  }
}

}  // namespace kvmark
