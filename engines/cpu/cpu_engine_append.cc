#include "engines/cpu/cpu_engine_append.h"

#include <algorithm>
#include <numeric>

#include "engines/codecs/simd.h"
#include "engines/cpu/fork.h"

namespace kvmark {
namespace {

constexpr int kTaskRows = 32;
constexpr int kCacheLineFloats = 16;

// The engine owns the memory that its spans point to; spans are const for those who only read.
std::byte* writable(const std::byte* tile) { return const_cast<std::byte*>(tile); }

}  // namespace

RowAppender::RowAppender(const KvSpec& spec, const Codec& k, const Codec& v, const RopeTable* rope,
                         ThreadPool& pool)
    : kv_heads_(spec.kv_heads),
      k_dim_(spec.k_dim),
      v_dim_(spec.v_dim),
      k_(k),
      v_(v),
      rope_(rope),
      rotate_(rotate_heads(chosen_simd_target())),
      pool_(pool),
      unit_(std::lcm(kTaskRows, std::lcm(k.tile(k_dim_).tokens, v.tile(v_dim_).tokens))),
      found_(static_cast<size_t>(pool.threads())),
      scratch_floats_((std::max(k_dim_, v_dim_) + kCacheLineFloats - 1) / kCacheLineFloats *
                      kCacheLineFloats) {
  tasks_.reserve(static_cast<size_t>(spec.max_rows));
  scratch_ = Buffer(found_.size() * static_cast<size_t>(scratch_floats_) * sizeof(float));
}

void RowAppender::plan(std::span<const Piece> pieces) {
  tasks_.clear();
  std::fill(found_.begin(), found_.end(), Found());
  int packed = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int end = pieces[i].first + pieces[i].rows;
    for (int first = pieces[i].first; first < end;) {
      const int rows = std::min(end, (first / unit_ + 1) * unit_) - first;
      tasks_.push_back({static_cast<int>(i), first, rows, packed});
      first += rows;
      packed += rows;
    }
  }
}

void RowAppender::append(std::span<const Span> spans, Tensor k, Tensor v) {
  const int loops = static_cast<int>(tasks_.size()) * kv_heads_;
  run_where_worth(pool_, loops, k.size() + v.size(), [&](int index, int thread) {
    const Task& task = tasks_[static_cast<size_t>(index / kv_heads_)];
    append_head(task, spans[static_cast<size_t>(task.piece)], index % kv_heads_, k, v,
                scratch_.as<float>() + int64_t{thread} * scratch_floats_,
                found_[static_cast<size_t>(thread)]);
  });
}

void RowAppender::append_head(const Task& task, const Span& span, int head, Tensor k, Tensor v,
                              float* scratch, Found& found) const {
  const auto load = [&](const float* row, int dim, const Rotation& rotation) {
    if (rotate_(row, 1, dim, rotation, 1.0f, scratch)) return;
    found.finite = false;
    std::fill_n(scratch, dim, 0.0f);
  };
  for (int i = 0; i < task.rows; ++i) {
    const int position = task.first + i;
    const int slot = span.first_slot + position - span.first_position;
    load(k.row(task.packed + i) + int64_t{head} * k_dim_, k_dim_,
         rope_ ? rope_->at(position) : Rotation());
    found.saturated +=
        k_.encode(scratch, k_dim_, writable(span.k_tile(head, slot)), slot % span.k_tokens);
    load(v.row(task.packed + i) + int64_t{head} * v_dim_, v_dim_, Rotation());
    found.saturated +=
        v_.encode(scratch, v_dim_, writable(span.v_tile(head, slot)), slot % span.v_tokens);
  }
}

bool RowAppender::finite() const {
  return std::all_of(found_.begin(), found_.end(), [](const Found& f) { return f.finite; });
}

int64_t RowAppender::saturated() const {
  return std::accumulate(found_.begin(), found_.end(), int64_t{0},
                         [](int64_t sum, const Found& f) { return sum + f.saturated; });
}

}  // namespace kvmark
