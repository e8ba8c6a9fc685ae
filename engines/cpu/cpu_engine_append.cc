#include "engines/cpu/cpu_engine_append.h"

#include <algorithm>
#include <numeric>

#include "engines/codecs/simd.h"
#include "engines/cpu/fork.h"

namespace kvmark {
namespace {

constexpr int kTaskRows = 32;
constexpr int kCacheLineFloats = 16;
// Parts of a loop a thread, so that the last ones even out.
constexpr int kPartsPerThread = 4;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

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
      unit_(std::lcm(kTaskRows, std::lcm(k.k.tile(k_dim_).tokens, v.v.tile(v_dim_).tokens))),
      found_(static_cast<size_t>(pool.threads())),
      scratch_floats_(ceil_div(kv_heads_ * std::max(k_dim_, v_dim_), kCacheLineFloats) *
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
  const int tasks = static_cast<int>(tasks_.size());
  const int threads = threads_worth(pool_, k.size() + v.size());
  const int parts_wanted = threads > 1 ? ceil_div(kPartsPerThread * threads, tasks) : 1;
  const int heads = ceil_div(kv_heads_, std::min(parts_wanted, kv_heads_));
  const int parts = ceil_div(kv_heads_, heads);
  run_on(threads, pool_, tasks * parts, [&](int index, int thread) {
    const Task& task = tasks_[static_cast<size_t>(index / parts)];
    const int first_head = index % parts * heads;
    append_task(task, spans[static_cast<size_t>(task.piece)], first_head,
                std::min(heads, kv_heads_ - first_head), k, v, thread);
  });
}

void RowAppender::append_task(const Task& task, const Span& span, int first_head, int heads,
                              Tensor k, Tensor v, int thread) {
  for (int i = 0; i < task.rows; ++i) {
    const int position = task.first + i;
    const int slot = span.first_slot + position - span.first_position;
    const float* k_row = k.row(task.packed + i) + int64_t{first_head} * k_dim_;
    const float* v_row = v.row(task.packed + i) + int64_t{first_head} * v_dim_;
    store_heads(k_.k, k_row, heads, k_dim_, rope_ ? rope_->at(position) : Rotation(),
                writable(span.k_tile(first_head, slot)), span.head_bytes, slot % span.k_tokens,
                thread);
    store_heads(v_.v, v_row, heads, v_dim_, Rotation(), writable(span.v_tile(first_head, slot)),
                span.head_bytes, slot % span.v_tokens, thread);
  }
}

void RowAppender::store_heads(const TileForm& form, const float* row, int heads, int dim,
                              const Rotation& rotation, std::byte* tile, int64_t head_bytes,
                              int slot, int thread) {
  Found& found = found_[static_cast<size_t>(thread)];
  float* scratch = scratch_.as<float>() + int64_t{thread} * scratch_floats_;
  if (!rotate_(row, heads, dim, rotation, 1.0f, scratch)) {
    found.finite = false;
    std::fill_n(scratch, int64_t{heads} * dim, 0.0f);
  }
  for (int head = 0; head < heads; ++head) {
    found.saturated +=
        form.encode(scratch + int64_t{head} * dim, dim, tile + head * head_bytes, slot);
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
