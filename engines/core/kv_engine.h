// The first of the two seams: a KV cache together with its attention.
//
// A step is begin → attend for each layer → commit. The rows to feed start at next(seq), so that an
// engine without a cache (next() is always 0) needs no special case anywhere; prefill, chunked
// prefill and decode are one path.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/core/check.h"
#include "engines/core/observer.h"
#include "engines/core/tensor.h"
#include "engines/core/tile.h"

namespace kvmark {

using SeqId = int;

// What an engine is made for. Every size is a maximum that begin() holds the caller to.
struct KvSpec {
  int layers = 0;
  int heads = 0;     // query heads
  int kv_heads = 0;  // stored heads; query head h reads KV head h / (heads / kv_heads)
  int k_dim = 0;     // channels of a key (and query) head
  int v_dim = 0;     // channels of a value head
  std::optional<Rope> rope;
  int max_seqs = 1;
  int max_len = 0;           // positions of one sequence
  int max_rows = 0;          // rows fed in one step, all pieces together
  int64_t budget_bytes = 0;  // of the allocator; 0: no budget
};

// What is impossible about a spec (a size < 1, heads not a multiple of kv_heads, a rotary width
// that is odd or wider than a key), naming the field; nothing when it is sound.
std::optional<Refusal> check_spec(const KvSpec& spec);

// Rows [first, first + rows) of one sequence; the pieces of a step are packed one behind the other.
struct Piece {
  SeqId seq = 0;
  int first = 0;
  int rows = 0;
};

// Bytes as the engine holds them now. live = committed rows by formula; reserved = what the
// engine's allocator holds (blocks, tables, tails); peak = the largest `reserved` so far.
struct Footprint {
  int64_t live_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t payload_bytes = 0;  // of live: codes
  int64_t scale_bytes = 0;    // of live: scales and zero points
  int64_t table_bytes = 0;    // of reserved: block tables
  int64_t blocks_used = 0;    // paged: blocks mapped by some sequence
  int64_t blocks_free = 0;    // paged: held, mapped by none
  int64_t saturated = 0;      // values clamped by the codec so far
};

// How far a stored key (after RoPE) or value may be from the one that was fed, unless it was
// clamped.
struct StoredBound {
  RowBound k, v;
};

// Something that happened inside the engine: "grow", "copy_on_write", ...
struct Event {
  std::string kind;
  SeqId seq = 0;
  int position = 0;
  int64_t bytes = 0;
};

class KvEngine {
 public:
  explicit KvEngine(const KvSpec& spec);  // throws LogicError on an impossible spec
  virtual ~KvEngine() = default;
  KvEngine(const KvEngine&) = delete;
  KvEngine& operator=(const KvEngine&) = delete;

  const KvSpec& spec() const { return spec_; }

  // A new empty sequence. Throws RuntimeError when max_seqs are open or the budget is too small.
  SeqId open();
  // A new sequence with the first `length` tokens of `seq` (0 ≤ length ≤ seen). Not within a step.
  SeqId fork(SeqId seq, int length);
  void close(SeqId seq);

  // Tokens committed. A host mirror, never a device read; the same for every engine.
  int seen(SeqId seq) const;
  // The first row that the next step must feed: seen(), or 0 for an engine without a cache.
  int next(SeqId seq) const;
  // Keeps the first `length` tokens; refused (nothing changed) where that cannot be exact.
  std::optional<Refusal> truncate(SeqId seq, int length);

  // Opens a step that feeds `pieces`: all or nothing. Each piece must start at next(seq) and end
  // past seen(seq); a sequence stands in at most one piece. Refused when a limit or the budget does
  // not allow it; misuse throws LogicError.
  std::optional<Refusal> begin(std::span<const Piece> pieces);
  // Stores the rows of one layer and computes their attention. q: (rows, heads · k_dim), k: (rows,
  // kv_heads · k_dim), both BEFORE RoPE; v: (rows, kv_heads · v_dim); out: (rows | pieces | 0 as
  // `outputs` says, heads · v_dim). Visible to row i: the rows j ≤ i of its own sequence. Layers
  // come in ascending order, each once a step. Enqueues on a device; complete on return on the CPU.
  void attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out);
  // Makes the rows of the step, whose layers were all attended, part of the sequences. Throws
  // RuntimeError after a rollback when a k or v of the step was not finite. (A device that would
  // have to be waited for may say so at the next commit(), before it stores anything more.)
  void commit();
  // Forgets the step; the engine is as before begin().
  void rollback();

  // Rows [first, first + rows) of the stored keys (after RoPE) and values of `seq`, decoded:
  // k: (rows, kv_heads · k_dim), v: (rows, kv_heads · v_dim). Rows of the open step count as soon
  // as their layer was attended. An engine without a cache holds only the layer attended last.
  void read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const;

  Footprint footprint() const { return do_footprint(); }
  // What happened since the last call.
  std::vector<Event> take_events() { return do_take_events(); }
  // The kernel in use: "generic" or a SIMD target's name.
  virtual std::string kernel() const = 0;
  // The bound on the relative RMS error of a correct output (see docs/metrics.md).
  virtual double tolerance() const = 0;

  virtual StoredBound stored_bound() const = 0;

  // At most one; null: none. Not owned.
  void set_observer(StepObserver* observer) { observer_ = observer; }

 protected:
  // False for an engine that keeps nothing between steps: next() is 0, rows are fed from 0.
  virtual bool keeps_rows() const { return true; }
  virtual void do_open(SeqId seq) = 0;
  virtual void do_fork(SeqId from, SeqId to, int length) = 0;
  virtual void do_close(SeqId seq) = 0;
  virtual std::optional<Refusal> do_truncate(SeqId seq, int length) = 0;
  virtual std::optional<Refusal> do_begin(std::span<const Piece> pieces) = 0;
  virtual void do_attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out) = 0;
  virtual bool do_finite() = 0;  // were all k and v of the open step finite?
  virtual void do_commit() = 0;
  virtual void do_rollback() = 0;
  virtual void do_read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const = 0;
  virtual Footprint do_footprint() const = 0;
  virtual std::vector<Event> do_take_events() = 0;

  void enter(Phase phase) const {
    if (observer_) observer_->enter(phase);
  }
  std::span<const Piece> pieces() const { return pieces_; }  // of the open step
  int fed_rows() const { return fed_rows_; }                 // of the open step, all pieces
  int64_t committed_rows() const;                            // of all open sequences

 private:
  struct Sequence {
    bool open = false;
    int seen = 0;
    int pending = 0;  // length after commit while it stands in the open step
  };
  const Sequence& at(SeqId seq) const;
  void check_idle(const char* call) const;
  SeqId unused_id() const;
  void check_piece(const Piece& piece) const;
  void check_rows(const char* name, Tensor t, int rows, int cols) const;
  void end_step(bool committed);

  KvSpec spec_;
  std::vector<Sequence> sequences_;
  std::vector<Piece> pieces_;  // of the open step
  bool stepping_ = false;
  int fed_rows_ = 0;
  int attended_ = -1;  // the last layer attended in the open step
  StepObserver* observer_ = nullptr;
};

}  // namespace kvmark
