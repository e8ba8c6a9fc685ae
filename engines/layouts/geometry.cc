#include "engines/layouts/geometry.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int kPoison = 0xFF;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int tiles_for(const TileSpec& tile, int rows) { return (rows + tile.tokens - 1) / tile.tokens; }

}  // namespace

Span BlockGeometry::span(const std::byte* pool, const int32_t* table, int count) const {
  return {.pool = pool,
          .table = table,
          .block_slots = block_slots,
          .block_bytes = block_bytes,
          .k_tokens = k.tokens,
          .v_tokens = v.tokens,
          .k_tile_bytes = k.bytes,
          .v_tile_bytes = v.bytes,
          .head_bytes = head_bytes,
          .v_offset = v_offset,
          .first_slot = 0,
          .first_position = 0,
          .count = count};
}

int round_to_tiles(const TileSpec& k, const TileSpec& v, int slots) {
  return static_cast<int>(round_up(slots, std::lcm(k.tokens, v.tokens)));
}

BlockGeometry make_geometry(const TileSpec& k, const TileSpec& v, int kv_heads, int block_slots) {
  check(block_slots > 0 && block_slots % k.tokens == 0 && block_slots % v.tokens == 0,
        "a block of {} slots does not hold whole tiles of {} and {} slots", block_slots, k.tokens,
        v.tokens);
  check(k.bytes % k.align == 0 && v.bytes % v.align == 0,
        "tile bytes {} / {} break alignment {} / {}", k.bytes, v.bytes, k.align, v.align);
  BlockGeometry g{.k = k, .v = v, .kv_heads = kv_heads, .block_slots = block_slots};
  g.k_bytes = block_slots / k.tokens * k.bytes;
  g.v_bytes = block_slots / v.tokens * v.bytes;
  g.v_offset = round_up(g.k_bytes, v.align);
  g.head_bytes = round_up(g.v_offset + g.v_bytes, std::max(k.align, v.align));
  g.block_bytes = round_up(kv_heads * g.head_bytes, kCacheLine);
  return g;
}

void copy_slots(const BlockGeometry& from, const std::byte* source, const BlockGeometry& to,
                std::byte* target, int rows) {
  const auto k_bytes = static_cast<size_t>(tiles_for(from.k, rows) * from.k.bytes);
  const auto v_bytes = static_cast<size_t>(tiles_for(from.v, rows) * from.v.bytes);
  for (int head = 0; head < from.kv_heads; ++head) {
    std::byte* to_head = target + head * to.head_bytes;
    const std::byte* from_head = source + head * from.head_bytes;
    std::memcpy(to_head, from_head, k_bytes);
    std::memcpy(to_head + to.v_offset, from_head + from.v_offset, v_bytes);
  }
}

void poison_slots(const BlockGeometry& g, std::byte* block, int rows) {
  const int64_t k_kept = tiles_for(g.k, rows) * g.k.bytes;
  const int64_t v_kept = tiles_for(g.v, rows) * g.v.bytes;
  for (int head = 0; head < g.kv_heads; ++head) {
    std::byte *k = block + head * g.head_bytes, *v = k + g.v_offset;
    std::memset(k + k_kept, kPoison, static_cast<size_t>(g.k_bytes - k_kept));
    std::memset(v + v_kept, kPoison, static_cast<size_t>(g.v_bytes - v_kept));
  }
}

}  // namespace kvmark
