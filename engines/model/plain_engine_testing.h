// The simplest KvEngine there can be: plain f32 rows, attention in double, row by row. Test
// support, and an independent second opinion on the real engines: it shares no code with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engines/core/kv_engine.h"

namespace kvmark {

class PlainEngine : public KvEngine {
 public:
  explicit PlainEngine(const KvSpec& spec) : KvEngine(spec), sequences_(spec.max_seqs) {}

  std::string kernel() const override { return "plain"; }
  double tolerance() const override { return 1e-6; }
  StoredBound stored_bound() const override { return {{1e-6, 0}, {1e-6, 0}}; }

 protected:
  void do_open(SeqId seq) override { sequences_[seq].assign(spec().layers, {}); }
  void do_fork(SeqId from, SeqId to, int length) override {
    sequences_[to] = sequences_[from];
    cut(to, length);
  }
  void do_close(SeqId seq) override { sequences_[seq].clear(); }
  std::optional<Refusal> do_truncate(SeqId seq, int length) override {
    cut(seq, length);
    return std::nullopt;
  }
  std::optional<Refusal> do_begin(std::span<const Piece>) override {
    finite_ = true;
    return std::nullopt;
  }

  void do_attend(int layer, Outputs outputs, Tensor q, Tensor k, Tensor v, Tensor out) override {
    int fed = 0, written = 0;
    for (const Piece& piece : pieces()) {
      enter(Phase::append);
      Rows& rows = sequences_[piece.seq][layer];
      for (int i = 0; i < piece.rows; ++i)
        append(rows, piece.first + i, k.row(fed + i), v.row(fed + i));
      enter(Phase::attend);
      const int first_wanted = outputs == Outputs::all    ? 0
                               : outputs == Outputs::last ? piece.rows - 1
                                                          : piece.rows;
      for (int i = first_wanted; i < piece.rows; ++i) {
        attend_row(rows, piece.first + i, q.row(fed + i), out.row(written++));
      }
      fed += piece.rows;
    }
  }
  bool do_finite() override { return finite_; }
  void do_commit() override {}
  void do_rollback() override {
    for (const Piece& piece : pieces()) cut(piece.seq, piece.first);
  }
  void do_read(SeqId seq, int layer, int first, int rows, Tensor k, Tensor v) const override {
    const Rows& stored = sequences_[seq][layer];
    std::copy_n(stored.k.data() + int64_t{first} * k.cols, int64_t{rows} * k.cols, k.data);
    std::copy_n(stored.v.data() + int64_t{first} * v.cols, int64_t{rows} * v.cols, v.data);
  }
  Footprint do_footprint() const override { return {}; }
  std::vector<Event> do_take_events() override { return {}; }

 private:
  struct Rows {
    std::vector<float> k, v;  // (position, kv_heads · dim), keys rotated
  };

  void cut(SeqId seq, int length) {
    for (Rows& rows : sequences_[seq]) {
      rows.k.resize(
          std::min<size_t>(rows.k.size(), size_t(length) * spec().kv_heads * spec().k_dim));
      rows.v.resize(
          std::min<size_t>(rows.v.size(), size_t(length) * spec().kv_heads * spec().v_dim));
    }
  }

  // The head at `row` (k_dim numbers) turned to `position`.
  std::vector<double> rotated(const float* row, int position) const {
    std::vector<double> head(row, row + spec().k_dim);
    if (!spec().rope) return head;
    const Rope& rope = *spec().rope;
    for (int i = 0; i < rope.dims / 2; ++i) {
      const bool halves = rope.pairing == RopePairing::halves;
      const int a = halves ? i : 2 * i, b = halves ? i + rope.dims / 2 : 2 * i + 1;
      const double angle = position * std::pow(rope.theta, -2.0 * i / rope.dims);
      const double x = head[a], y = head[b];
      head[a] = x * std::cos(angle) - y * std::sin(angle);
      head[b] = x * std::sin(angle) + y * std::cos(angle);
    }
    return head;
  }

  void append(Rows& rows, int position, const float* k, const float* v) {
    const int v_cols = spec().kv_heads * spec().v_dim;
    for (int head = 0; head < spec().kv_heads; ++head) {
      const std::vector<double> key = rotated(k + head * spec().k_dim, position);
      rows.k.insert(rows.k.end(), key.begin(), key.end());
      for (const double x : key) finite_ = finite_ && std::isfinite(x);
    }
    rows.v.insert(rows.v.end(), v, v + v_cols);
    finite_ = finite_ && std::all_of(v, v + v_cols, [](float x) { return std::isfinite(x); });
  }

  void attend_row(const Rows& rows, int position, const float* q, float* out) const {
    const int k_dim = spec().k_dim, v_dim = spec().v_dim, kv_heads = spec().kv_heads;
    for (int head = 0; head < spec().heads; ++head) {
      const int kv = head / (spec().heads / kv_heads);
      const std::vector<double> query = rotated(q + head * k_dim, position);
      std::vector<double> scores(position + 1, 0.0);
      for (int j = 0; j <= position; ++j) {
        const float* key = rows.k.data() + (int64_t{j} * kv_heads + kv) * k_dim;
        for (int d = 0; d < k_dim; ++d) scores[j] += query[d] * key[d] / std::sqrt(double(k_dim));
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      std::vector<double> sums(v_dim, 0.0);
      for (int j = 0; j <= position; ++j) {
        const double weight = std::exp(scores[j] - most);
        const float* value = rows.v.data() + (int64_t{j} * kv_heads + kv) * v_dim;
        for (int d = 0; d < v_dim; ++d) sums[d] += weight * value[d];
        total += weight;
      }
      for (int d = 0; d < v_dim; ++d) out[head * v_dim + d] = static_cast<float>(sums[d] / total);
    }
  }

  std::vector<std::vector<Rows>> sequences_;  // [sequence][layer]
  bool finite_ = true;
};

}  // namespace kvmark
