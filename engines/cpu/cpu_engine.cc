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
#include "engines/cpu/cpu_engine_append.h"
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
        k_(*find_codec(engine.k_codec)),
        v_(*find_codec(engine.v_codec)),
        rope_(spec.rope ? std::optional<RopeTable>(std::in_place, *spec.rope, spec.max_len)
                        : std::nullopt),
        store_(make_store(engine, spec, options)),
        appender_(spec, k_, v_, rope_ ? &*rope_ : nullptr, pool),
        driver_({spec.heads, spec.kv_heads, spec.k_dim, spec.v_dim}, k_, v_, spec.max_rows,
                spec.max_len, pool,
                {.rope = rope_ ? &*rope_ : nullptr,
                 .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.k_dim)))}) {
    const auto seqs = static_cast<size_t>(spec.max_seqs);
    spans_.reserve(seqs);
    queries_.reserve(seqs);
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
  void plan_queries(Outputs outputs, Tensor q, Tensor out);

  const EngineSpec engine_;
  const Codec& k_;
  const Codec& v_;
  std::optional<RopeTable> rope_;
  std::unique_ptr<RowStore> store_;
  RowAppender appender_;
  AttentionDriver driver_;

  // Of the open step.
  std::vector<Span> spans_;          // by piece: its sequence in the layer at hand
  std::vector<QueryPiece> queries_;  // by piece
  int stored_layer_ = -1;            // the layer attended last, also after the step
  int64_t saturated_ = 0;
};

std::optional<Refusal> CpuEngine::do_begin(std::span<const Piece> pieces) {
  if (auto refusal = store_->begin(pieces)) return refusal;
  appender_.plan(pieces);
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
  plan_queries(outputs, q, out);
  driver_.attend(queries_);
}

void CpuEngine::plan_queries(Outputs outputs, Tensor q, Tensor out) {
  queries_.clear();
  int fed = 0, wanted = 0;  // rows of the pieces before
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Piece& piece = pieces()[i];
    const int rows = outputs == Outputs::all ? piece.rows : 1;
    fed += piece.rows;
    queries_.push_back({.spans = {&spans_[i], 1},
                        .first_position = piece.first + piece.rows - rows,
                        .rows = rows,
                        .q = q.row(fed - rows),
                        .out = out.row(wanted)});
    wanted += rows;
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
