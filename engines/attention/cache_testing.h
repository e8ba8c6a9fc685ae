// A small cache for tests: rows encoded by any codecs into memory laid out as a Span says.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/core/bits.h"
#include "engines/core/buffer.h"

namespace kvmark {

inline std::vector<float> random_floats(int64_t n, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator);
  return values;
}

// Rows of one sequence. All memory that holds no row is NaN in every format (bytes 0xff).
class TestCache {
 public:
  // `block`: slots of a block, 0: contiguous. Blocks lie in a shuffled order where `shuffled`.
  TestCache(const AttentionShape& shape, const Codec& k, const Codec& v, int max_len, int block = 0,
            bool shuffled = false)
      : shape_(shape), k_(k), v_(v) {
    const TileSpec k_tile = k.k.tile(shape.k_dim), v_tile = v.v.tile(shape.v_dim);
    const int unit = std::max(k_tile.tokens, v_tile.tokens);
    span_.block_slots = block > 0 ? block : (max_len + unit - 1) / unit * unit;
    span_.k_tokens = k_tile.tokens;
    span_.v_tokens = v_tile.tokens;
    span_.k_tile_bytes = k_tile.bytes;
    span_.v_tile_bytes = v_tile.bytes;
    span_.v_offset = round_up(span_.block_slots / k_tile.tokens * k_tile.bytes);
    span_.head_bytes = span_.v_offset + round_up(span_.block_slots / v_tile.tokens * v_tile.bytes);
    span_.block_bytes = shape.kv_heads * span_.head_bytes;
    const int blocks = (max_len + span_.block_slots - 1) / span_.block_slots;
    memory_ = Buffer(span_.block_bytes * blocks);
    std::memset(memory_.data(), 0xff, memory_.size());
    span_.pool = memory_.data();
    if (block > 0) {
      table_.resize(blocks);
      std::iota(table_.begin(), table_.end(), 0);
      if (shuffled) std::shuffle(table_.begin(), table_.end(), std::mt19937(1));
      span_.table = table_.data();
    }
  }

  // One row: k: (kv_heads, k_dim), v: (kv_heads, v_dim).
  void append(const float* k, const float* v) {
    const int slot = span_.count++;
    for (int head = 0; head < shape_.kv_heads; ++head) {
      k_.k.encode(k + head * shape_.k_dim, shape_.k_dim, mutable_tile(span_.k_tile(head, slot)),
                  slot % span_.k_tokens);
      v_.v.encode(v + head * shape_.v_dim, shape_.v_dim, mutable_tile(span_.v_tile(head, slot)),
                  slot % span_.v_tokens);
    }
  }
  void append_random(int rows, uint64_t seed, float scale = 1.0f) {
    const auto k = random_floats(int64_t{rows} * shape_.kv_heads * shape_.k_dim, seed, scale);
    const auto v = random_floats(int64_t{rows} * shape_.kv_heads * shape_.v_dim, seed + 1);
    for (int row = 0; row < rows; ++row) {
      append(k.data() + int64_t{row} * shape_.kv_heads * shape_.k_dim,
             v.data() + int64_t{row} * shape_.kv_heads * shape_.v_dim);
    }
  }

  const Span& span() const { return span_; }

  // The outputs of `rows` queries at positions first + i, by the reference over the decoded rows.
  // q is scaled, as the driver gets it.
  std::vector<double> reference(const float* q, int first, int rows) const {
    const int count = std::min(span_.count, first + rows);
    std::vector<double> out(int64_t{rows} * shape_.heads * shape_.v_dim);
    std::vector<float> k(int64_t{count} * shape_.k_dim), v(int64_t{count} * shape_.v_dim);
    for (int kv_head = 0; kv_head < shape_.kv_heads; ++kv_head) {
      for (int slot = 0; slot < count; ++slot) {
        k_.k.decode(span_.k_tile(kv_head, slot), slot % span_.k_tokens, shape_.k_dim,
                    k.data() + int64_t{slot} * shape_.k_dim);
        v_.v.decode(span_.v_tile(kv_head, slot), slot % span_.v_tokens, shape_.v_dim,
                    v.data() + int64_t{slot} * shape_.v_dim);
      }
      const int group = shape_.heads / shape_.kv_heads;
      for (int row = 0; row < rows; ++row) {
        for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          std::vector<double> query(shape_.k_dim);
          const float* from = q + (int64_t{row} * shape_.heads + head) * shape_.k_dim;
          for (int d = 0; d < shape_.k_dim; ++d) query[d] = from[d] * std::sqrt(shape_.k_dim);
          attend_reference(query.data(), shape_.k_dim, k.data(), shape_.k_dim, v.data(),
                           shape_.v_dim, shape_.v_dim, std::min(first + row + 1, span_.count),
                           out.data() + (int64_t{row} * shape_.heads + head) * shape_.v_dim);
        }
      }
    }
    return out;
  }

 private:
  static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::byte* mutable_tile(const std::byte* tile) {
    return memory_.data() + (tile - memory_.data());
  }

  AttentionShape shape_;
  const Codec& k_;
  const Codec& v_;
  Span span_;
  std::vector<int32_t> table_;
  Buffer memory_;
};

// RMS(actual − expected) / RMS(expected); NaN where an actual value is NaN.
inline double relative_rms(const std::vector<float>& actual, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace kvmark
