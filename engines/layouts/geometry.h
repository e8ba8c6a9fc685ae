// How a block of slots is cut into tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/core/tile.h"
#include "engines/layouts/span.h"

namespace kvmark {

// The shape of every block of one layer, as span.h draws it. The stride between blocks is rounded
// to a cache line of 64 bytes and no further: rounding small blocks to pages would waste most of
// their memory.
struct BlockGeometry {
  TileSpec k, v;
  int kv_heads = 0;
  int block_slots = 0;
  int64_t k_bytes = 0, v_bytes = 0;  // the tiles of one head
  int64_t head_bytes = 0, v_offset = 0;
  int64_t block_bytes = 0;

  // Rows [0, count) of a sequence from `pool` and `table` (null: contiguous) on.
  Span span(const std::byte* pool, const int32_t* table, int count) const;
  // The blocks that `rows` rows need.
  int blocks(int rows) const { return (rows + block_slots - 1) / block_slots; }
};

// The smallest number of slots ≥ `slots` that holds whole tiles of both kinds.
int round_to_tiles(const TileSpec& k, const TileSpec& v, int slots);

// Throws LogicError unless `block_slots` is a multiple of both tile lengths. Sizes must not
// overflow (check_engine sees to that).
BlockGeometry make_geometry(const TileSpec& k, const TileSpec& v, int kv_heads, int block_slots);

// Copies the tiles that hold slots [0, rows) of a block into a block of another length, bit for
// bit.
void copy_slots(const BlockGeometry& from, const std::byte* source, const BlockGeometry& to,
                std::byte* target, int rows);

// Fills the tiles behind slot `rows` − 1 with 0xFF bytes: NaN as an f32, f16 or bf16, so that a
// kernel that reads what it must not shows it. A tile that holds a kept slot stays as it is.
void poison_slots(const BlockGeometry& geometry, std::byte* block, int rows);

}  // namespace kvmark
