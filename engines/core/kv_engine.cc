#include "engines/core/kv_engine.h"

#include <algorithm>

namespace kvmark {

std::optional<Refusal> check_spec(const KvSpec& spec) {
  const std::pair<const char*, int> sizes[] = {
      {"layers", spec.layers},   {"heads", spec.heads},      {"kv_heads", spec.kv_heads},
      {"k_dim", spec.k_dim},     {"v_dim", spec.v_dim},      {"max_seqs", spec.max_seqs},
      {"max_len", spec.max_len}, {"max_rows", spec.max_rows}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) return Refusal{fmt::format("{} is {}, must be at least 1", name, size)};
  }
  if (spec.heads % spec.kv_heads != 0) {
    return Refusal{
        fmt::format("{} query heads cannot share {} KV heads evenly", spec.heads, spec.kv_heads)};
  }
  if (spec.rope &&
      (spec.rope->dims < 2 || spec.rope->dims % 2 != 0 || spec.rope->dims > spec.k_dim)) {
    return Refusal{
        fmt::format("rope rotates {} channels: must be even, at least 2 and at most the "
                    "{} of a key head",
                    spec.rope->dims, spec.k_dim)};
  }
  if (spec.budget_bytes < 0) {
    return Refusal{fmt::format("budget_bytes is {}, must be 0 (none) or more", spec.budget_bytes)};
  }
  return std::nullopt;
}

KvEngine::KvEngine(const KvSpec& spec) : spec_(spec) {
  if (const auto refusal = check_spec(spec)) throw LogicError("KvSpec: " + refusal->reason);
  sequences_.resize(static_cast<size_t>(spec.max_seqs));
  pieces_.reserve(sequences_.size());
}

const KvEngine::Sequence& KvEngine::at(SeqId seq) const {
  check(seq >= 0 && seq < spec_.max_seqs && sequences_[static_cast<size_t>(seq)].open,
        "sequence {} is not open", seq);
  return sequences_[static_cast<size_t>(seq)];
}

void KvEngine::check_idle(const char* call) const {
  check(!stepping_, "{} within a step: commit or roll back first", call);
}

SeqId KvEngine::unused_id() const {
  for (SeqId seq = 0; seq < spec_.max_seqs; ++seq) {
    if (!sequences_[static_cast<size_t>(seq)].open) return seq;
  }
  throw RuntimeError(
      fmt::format("all {} sequences of this engine are open; close one first", spec_.max_seqs));
}

SeqId KvEngine::open() {
  check_idle("open()");
  const SeqId seq = unused_id();
  do_open(seq);
  sequences_[static_cast<size_t>(seq)] = {.open = true};
  return seq;
}

SeqId KvEngine::fork(SeqId seq, int length) {
  check_idle("fork()");
  const int seen = at(seq).seen;
  check(length >= 0 && length <= seen, "fork of sequence {} at {}: it has {} tokens", seq, length,
        seen);
  const SeqId child = unused_id();
  do_fork(seq, child, length);
  sequences_[static_cast<size_t>(child)] = {.open = true, .seen = length};
  return child;
}

void KvEngine::close(SeqId seq) {
  check_idle("close()");
  at(seq);
  do_close(seq);
  sequences_[static_cast<size_t>(seq)] = {};
}

int KvEngine::seen(SeqId seq) const { return at(seq).seen; }

int KvEngine::next(SeqId seq) const { return keeps_rows() ? seen(seq) : (at(seq), 0); }

int64_t KvEngine::committed_rows() const {
  int64_t rows = 0;
  for (const Sequence& sequence : sequences_) rows += sequence.seen;  // 0 when closed
  return rows;
}

std::optional<Refusal> KvEngine::truncate(SeqId seq, int length) {
  check_idle("truncate()");
  const int seen = at(seq).seen;
  check(length >= 0 && length <= seen, "truncate of sequence {} to {}: it has {} tokens", seq,
        length, seen);
  if (length == seen) return std::nullopt;
  if (auto refusal = do_truncate(seq, length)) return refusal;
  sequences_[static_cast<size_t>(seq)].seen = length;
  return std::nullopt;
}

void KvEngine::check_piece(const Piece& piece) const {
  const Sequence& sequence = at(piece.seq);
  check(piece.rows > 0, "a piece of {} rows of sequence {}", piece.rows, piece.seq);
  check(piece.first == next(piece.seq), "sequence {} must be fed from row {}, not {}", piece.seq,
        next(piece.seq), piece.first);
  check(int64_t{piece.first} + piece.rows > sequence.seen,
        "sequence {} has {} tokens: a piece of rows [{}, {}) brings none", piece.seq, sequence.seen,
        piece.first, piece.first + piece.rows);
}

std::optional<Refusal> KvEngine::begin(std::span<const Piece> pieces) {
  check_idle("begin()");
  check(!pieces.empty(), "a step without pieces");
  int64_t rows = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    check_piece(pieces[i]);
    for (size_t j = 0; j < i; ++j) {
      check(pieces[j].seq != pieces[i].seq, "sequence {} stands twice in a step", pieces[i].seq);
    }
    rows += pieces[i].rows;
  }
  if (rows > spec_.max_rows) {
    return Refusal{
        fmt::format("a step of {} rows; this engine takes at most {}", rows, spec_.max_rows)};
  }
  for (const Piece& piece : pieces) {
    if (piece.first + piece.rows > spec_.max_len) {
      return Refusal{
          fmt::format("sequence {} would reach {} positions; this engine holds at most {}",
                      piece.seq, piece.first + piece.rows, spec_.max_len)};
    }
  }
  if (auto refusal = do_begin(pieces)) return refusal;

  pieces_.assign(pieces.begin(), pieces.end());
  for (const Piece& piece : pieces) {
    sequences_[static_cast<size_t>(piece.seq)].pending = piece.first + piece.rows;
  }
  stepping_ = true;
  fed_rows_ = static_cast<int>(rows);
  attended_ = -1;
  return std::nullopt;
}

void KvEngine::check_rows(const char* name, Tensor t, int rows, int cols) const {
  check(t.data != nullptr && t.rows == rows && t.cols == cols, "{} is ({}, {}){}, must be ({}, {})",
        name, t.rows, t.cols, t.data == nullptr ? " without memory" : "", rows, cols);
}

void KvEngine::attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out) {
  check(stepping_, "attend() outside a step");
  check(layer == attended_ + 1 && layer < spec_.layers,
        "attend() of layer {} after layer {} of {}: layers come in ascending order, each once",
        layer, attended_, spec_.layers);
  check_rows("k", k, fed_rows_, spec_.kv_heads * spec_.k_dim);
  check_rows("v", v, fed_rows_, spec_.kv_heads * spec_.v_dim);
  if (outputs != Outputs::none) {
    const int wanted = outputs == Outputs::all ? fed_rows_ : static_cast<int>(pieces_.size());
    check_rows("q", q, fed_rows_, spec_.heads * spec_.k_dim);
    check_rows("out", out, wanted, spec_.heads * spec_.v_dim);
  }
  do_attend(layer, outputs, q, k, v, out);
  attended_ = layer;
  if (observer_) observer_->attended(layer, outputs, pieces_, q, k, v, out);
}

void KvEngine::end_step(bool committed) {
  for (const Piece& piece : pieces_) {
    Sequence& sequence = sequences_[static_cast<size_t>(piece.seq)];
    if (committed) sequence.seen = sequence.pending;
    sequence.pending = 0;
  }
  pieces_.clear();
  stepping_ = false;
  fed_rows_ = 0;
}

void KvEngine::commit() {
  check(stepping_, "commit() outside a step");
  check(attended_ == spec_.layers - 1, "commit() after {} of {} layers", attended_ + 1,
        spec_.layers);
  if (!do_finite()) {
    rollback();
    throw RuntimeError(
        "a key or value of this step is infinite or NaN; the step was rolled back and nothing of "
        "it is stored");
  }
  do_commit();
  end_step(true);
}

void KvEngine::rollback() {
  check(stepping_, "rollback() outside a step");
  do_rollback();
  end_step(false);
}

void KvEngine::read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const {
  const Sequence& sequence = at(seq);
  check(layer >= 0 && layer < spec_.layers, "read() of layer {} of {}", layer, spec_.layers);
  const bool fed = stepping_ && sequence.pending > 0 && layer <= attended_;
  const int stored = fed ? sequence.pending : sequence.seen;
  check(first >= 0 && rows >= 0 && rows <= stored - first,
        "read() of {} rows from row {}: sequence {} has {} there", rows, first, seq, stored);
  if (rows == 0) return;
  check_rows("k", k, rows, spec_.kv_heads * spec_.k_dim);
  check_rows("v", v, rows, spec_.kv_heads * spec_.v_dim);
  do_read(seq, layer, first, rows, k, v);
}

}  // namespace kvmark
