// Appending: rows of a step → rotated, checked and encoded into their slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/attention/rope.h"
#include "engines/codecs/codec.h"
#include "engines/core/buffer.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"
#include "engines/layouts/span.h"

namespace kvmark {

class RowAppender {
 public:
  // `rope` may be null; all references outlive the appender. plan() and append() allocate nothing.
  RowAppender(const KvSpec& spec, const Codec& k, const Codec& v, const RopeTable* rope,
              ThreadPool& pool);

  // Starts a step: divides its rows into tasks.
  void plan(std::span<const Piece> pieces);
  // Stores one layer's rows. spans[i] holds the rows of piece i from position 0 on, its new ones
  // included. k: (rows, kv_heads · k_dim) before RoPE, v: (rows, kv_heads · v_dim). A row with an
  // infinity or NaN, after RoPE, is stored as zeros, since codecs are made for numbers.
  void append(std::span<const Span> spans, Tensor k, Tensor v);

  bool finite() const;        // were all rows since plan()?
  int64_t saturated() const;  // values clamped since plan()

 private:
  // Rows [first, first + rows) of a sequence, which stand at `packed` in the step's tensors.
  struct Task {
    int piece, first, rows, packed;
  };
  // What one thread found; a cache line each, so that threads don't share one.
  struct alignas(64) Found {
    int64_t saturated = 0;
    bool finite = true;
  };
  // Stores `heads` KV heads of a task's rows.
  void append_task(const Task& task, const Span& span, int first_head, int heads, Tensor k,
                   Tensor v, int thread);
  // Stores heads of one row, side by side at `row`: (heads, dim). `tile`: of the first head;
  // `head_bytes`: to the next one's; `slot`: within the tiles.
  void store_heads(const TileForm& form, const float* row, int heads, int dim,
                   const Rotation& rotation, std::byte* tile, int64_t head_bytes, int slot,
                   int thread);

  int kv_heads_, k_dim_, v_dim_;
  const Codec& k_;
  const Codec& v_;
  const RopeTable* rope_;
  const RotateHeads rotate_;
  ThreadPool& pool_;
  int unit_;  // rows of a task: whole tiles, so that no two tasks write into one
  std::vector<Task> tasks_;
  std::vector<Found> found_;  // by thread
  Buffer scratch_;            // (threads, scratch_floats_): heads of a row, rotated
  int scratch_floats_;
};

}  // namespace kvmark
