#include "engines/layouts/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr TileSpec kRow68 = {.tokens = 1, .bytes = 68, .align = 2};
constexpr TileSpec kTile4 = {.tokens = 4, .bytes = 160, .align = 32};

TEST(BlockGeometry, LaysKeysBesideValuesHeadByHeadAndRoundsTo64) {
  const BlockGeometry g = make_geometry(kRow68, kTile4, 3, 8);
  EXPECT_EQ(g.k_bytes, 8 * 68);
  EXPECT_EQ(g.v_bytes, 2 * 160);
  EXPECT_EQ(g.v_offset, 544);      // 8 · 68, already a multiple of 32
  EXPECT_EQ(g.head_bytes, 864);    // 544 + 320, already a multiple of 32
  EXPECT_EQ(g.block_bytes, 2624);  // 3 · 864 = 2592 → the next 64
  EXPECT_EQ(g.block_bytes % 64, 0);
  EXPECT_EQ(g.blocks(0), 0);
  EXPECT_EQ(g.blocks(8), 1);
  EXPECT_EQ(g.blocks(9), 2);
}

TEST(BlockGeometry, AlignsTheFirstValueTile) {
  const BlockGeometry g = make_geometry({.tokens = 1, .bytes = 6, .align = 2}, kTile4, 1, 4);
  EXPECT_EQ(g.v_offset, 32);
  EXPECT_EQ(g.head_bytes, 192);
}

TEST(BlockGeometry, RefusesTornTiles) {
  EXPECT_THROW(make_geometry(kRow68, kTile4, 1, 6), LogicError);
  EXPECT_THROW(make_geometry(kRow68, kTile4, 1, 0), LogicError);
  EXPECT_THROW(make_geometry({.tokens = 1, .bytes = 6, .align = 4}, kTile4, 1, 4), LogicError);
  EXPECT_EQ(round_to_tiles(kRow68, kTile4, 6), 8);
  EXPECT_EQ(round_to_tiles(kRow68, kRow68, 6), 6);
}

TEST(BlockGeometry, SpanFindsEveryTileOnce) {
  const BlockGeometry g = make_geometry(kRow68, kTile4, 2, 4);
  std::vector<std::byte> pool(static_cast<size_t>(3 * g.block_bytes));
  const int32_t table[] = {2, 0};
  const Span span = g.span(pool.data(), table, 8);
  EXPECT_EQ(span.k_tile(0, 0), pool.data() + 2 * g.block_bytes);
  EXPECT_EQ(span.k_tile(1, 3), pool.data() + 2 * g.block_bytes + g.head_bytes + 3 * 68);
  EXPECT_EQ(span.v_tile(1, 5), pool.data() + g.head_bytes + g.v_offset);
  EXPECT_EQ(g.span(pool.data(), nullptr, 8).k_tile(0, 4), pool.data() + g.block_bytes);
}

TEST(CopySlots, KeepsRowsAcrossBlocksOfOtherLengths) {
  const BlockGeometry small = make_geometry(kRow68, kTile4, 2, 4);
  const BlockGeometry large = make_geometry(kRow68, kTile4, 2, 12);
  std::vector<std::byte> from(static_cast<size_t>(small.block_bytes));
  std::vector<std::byte> to(static_cast<size_t>(large.block_bytes), std::byte{0x55});
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  copy_slots(small, from.data(), large, to.data(), 3);
  const Span source = small.span(from.data(), nullptr, 3);
  const Span target = large.span(to.data(), nullptr, 3);
  for (int head = 0; head < 2; ++head) {
    for (int slot = 0; slot < 3; ++slot) {
      EXPECT_TRUE(std::equal(source.k_tile(head, slot), source.k_tile(head, slot) + 68,
                             target.k_tile(head, slot)));
    }
    EXPECT_TRUE(
        std::equal(source.v_tile(head, 0), source.v_tile(head, 0) + 160, target.v_tile(head, 0)));
    EXPECT_EQ(*target.k_tile(head, 3), std::byte{0x55});
    EXPECT_EQ(*target.v_tile(head, 4), std::byte{0x55});
  }
}

TEST(PoisonSlots, SparesTilesWithKeptRows) {
  const BlockGeometry g = make_geometry(kRow68, kTile4, 2, 8);
  std::vector<std::byte> block(static_cast<size_t>(g.block_bytes));
  poison_slots(g, block.data(), 3);
  const Span span = g.span(block.data(), nullptr, 8);
  for (int head = 0; head < 2; ++head) {
    EXPECT_EQ(*span.k_tile(head, 2), std::byte{0});
    EXPECT_EQ(*span.k_tile(head, 3), std::byte{0xFF});
    EXPECT_EQ(*span.k_tile(head, 7), std::byte{0xFF});
    EXPECT_EQ(*span.v_tile(head, 3), std::byte{0});  // the tile of slots 0 to 3
    EXPECT_EQ(*span.v_tile(head, 4), std::byte{0xFF});
  }
}

}  // namespace
}  // namespace kvmark
