#include "engines/attention/block_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engines/layouts/geometry.h"

namespace kvmark {
namespace {

constexpr int kHeads = 3;

// Addresses only: nothing is read.
struct Rows {
  Rows(int k_tokens, int v_tokens, int block_slots, std::vector<int32_t> block_table, int count)
      : table(std::move(block_table)) {
    const TileSpec k{.tokens = k_tokens, .bytes = 64 * k_tokens, .align = 64};
    const TileSpec v{.tokens = v_tokens, .bytes = 128 * v_tokens, .align = 64};
    span = make_geometry(k, v, kHeads, block_slots)
               .span(reinterpret_cast<const std::byte*>(0x10000), table.data(), count);
  }
  std::vector<int32_t> table;
  Span span;
};

struct Expected {
  int position, head;
};

// Every row of the walk in its order, each checked against the span that holds it; and the number
// of rows that each step says it has.
std::vector<Expected> rows_of(BlockWalk& walk, std::span<const Span> spans, int kv_head, int end) {
  std::vector<Expected> rows;
  while (const BlockWalk::Step* step = walk.next(end)) {
    EXPECT_EQ(step->k.size(), step->v.size());
    EXPECT_EQ(step->first % kBlock, 0);
    int count = 0;
    for (size_t i = 0; i < step->k.size(); ++i) {
      const TileRun &k = step->k[i], &v = step->v[i];
      EXPECT_EQ(k.rows, v.rows);
      EXPECT_EQ(k.at, v.at);
      EXPECT_LE(k.at + k.rows, kBlock);
      EXPECT_LE(k.rows, kTileRows);
      count += k.rows;
      for (int row = 0; row < k.rows; ++row) {
        const int position = step->first + k.at + row;
        for (const Span& span : spans) {
          const int slot = span.first_slot + position - span.first_position;
          if (position < span.first_position || position >= span.first_position + span.count) {
            continue;
          }
          const int k_row = k.first_slot + row, v_row = v.first_slot + row;
          const int head = kv_head + step->head;
          EXPECT_EQ(k.tiles + k_row / span.k_tokens * span.k_tile_bytes, span.k_tile(head, slot));
          EXPECT_EQ(v.tiles + v_row / span.v_tokens * span.v_tile_bytes, span.v_tile(head, slot));
          EXPECT_EQ(k_row % span.k_tokens, slot % span.k_tokens);
          EXPECT_EQ(v_row % span.v_tokens, slot % span.v_tokens);
        }
        rows.push_back({position, step->head});
      }
    }
    EXPECT_EQ(step->rows, count);
  }
  return rows;
}

// Blocks ascend, heads within them, positions within those; each once.
void expect_all(const std::vector<Expected>& rows, std::vector<int> positions, int heads) {
  size_t next = 0;
  for (size_t from = 0, to = 0; from < positions.size(); from = to) {
    while (to < positions.size() && positions[to] / kBlock == positions[from] / kBlock) ++to;
    for (int head = 0; head < heads; ++head) {
      for (size_t i = from; i < to; ++i, ++next) {
        ASSERT_LT(next, rows.size());
        ASSERT_EQ(rows[next].position, positions[i]);
        ASSERT_EQ(rows[next].head, head);
      }
    }
  }
  EXPECT_EQ(next, rows.size());
}

std::vector<int> positions_between(int first, int last) {
  std::vector<int> positions(static_cast<size_t>(std::max(0, last - first)));
  std::iota(positions.begin(), positions.end(), first);
  return positions;
}

std::vector<int32_t> backwards(int blocks) {
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (int i = 0; i < blocks; ++i) table[i] = blocks - 1 - i;
  return table;
}

TEST(BlockWalk, NamesEachRowOnceForEveryTileAndBlockOfMemory) {
  BlockWalk walk(kHeads, 2, 16);
  for (int k_tokens : {1, 16}) {
    for (int v_tokens : {1, 16}) {
      for (int block_slots : {16, 48, 64, 5 * 16 + (k_tokens + v_tokens == 2 ? 3 : 0), 4096}) {
        const Rows rows(k_tokens, v_tokens, block_slots, backwards(4096 / block_slots + 1), 3000);
        for (int first : {0, 32, 1024, 2976}) {
          for (int last : {first, first + 1, first + 24, std::min(first + 32, 3000), 2999, 3000}) {
            for (int heads : {1, kHeads}) {
              walk.start({&rows.span, 1}, kHeads - heads, heads, first, last);
              expect_all(rows_of(walk, {&rows.span, 1}, kHeads - heads, 4096),
                         positions_between(first, last), heads);
            }
          }
        }
      }
    }
  }
}

TEST(BlockWalk, StopsAtAnEndAndGoesOnFromThere) {
  BlockWalk walk(kHeads, 8, 4);
  const Rows rows(16, 16, 16, backwards(100), 1500);
  walk.start({&rows.span, 1}, 0, kHeads, 0, 1500);
  expect_all(rows_of(walk, {&rows.span, 1}, 0, 1024), positions_between(0, 1024), kHeads);
  EXPECT_EQ(walk.next(1024), nullptr);
  expect_all(rows_of(walk, {&rows.span, 1}, 0, 2048), positions_between(1024, 1500), kHeads);
  EXPECT_EQ(walk.next(4096), nullptr);
}

TEST(BlockWalk, GoesOverGapsAndThroughBlocksOfSeveralSpans) {
  BlockWalk walk(kHeads, 2, 2);
  std::vector<Rows> parts;
  parts.reserve(4);
  std::vector<int> positions;
  std::vector<Span> spans;
  for (const auto& [first, count] :
       {std::pair(5, 20), std::pair(26, 0), std::pair(27, 3), std::pair(200, 150)}) {
    Span& span = parts.emplace_back(16, 16, 48, backwards(9), count + 7).span;
    span.first_slot = 7;
    span.first_position = first;
    span.count = count;
    spans.push_back(span);
    for (int i = 0; i < count; ++i) positions.push_back(first + i);
  }
  walk.start(spans, 0, 2, 0, 400);
  expect_all(rows_of(walk, spans, 0, 4096), positions, 2);
}

TEST(BlockWalk, WhatIsAheadComesSoManyRunsLater) {
  for (const auto& [heads, slots] : {std::pair(1, 16), std::pair(kHeads, 16), std::pair(1, 64),
                                     std::pair(kHeads, 32), std::pair(kHeads, 4096)}) {
    BlockWalk walk(kHeads, 3, 16);
    const Rows rows(16, 16, slots, backwards(200), 3000);
    walk.start({&rows.span, 1}, 0, heads, 0, 3000);
    std::vector<TileRun> k, v;
    while (const BlockWalk::Step* step = walk.next(4096)) {
      k.insert(k.end(), step->k.begin(), step->k.end());
      v.insert(v.end(), step->v.begin(), step->v.end());
    }
    ASSERT_EQ(k.size(), static_cast<size_t>((3000 + 15) / 16 * heads));
    for (size_t i = 0; i < k.size(); ++i) {
      EXPECT_EQ(k[i].ahead, i + 3 < k.size() ? k[i + 3].tiles : nullptr) << i;
      EXPECT_EQ(v[i].ahead, i + 16 < v.size() ? v[i + 16].tiles : nullptr) << i;
    }
  }
}

TEST(BlockWalk, AStepStaysWhileTheNextOneIsGivenOut) {
  BlockWalk walk(1, 2, 2);
  const Rows rows(16, 16, 4096, {0}, 4096);
  walk.start({&rows.span, 1}, 0, 1, 0, 4096);
  const BlockWalk::Step* before = walk.next(4096);
  for (int first = kBlock; first < 4096; first += kBlock) {
    const BlockWalk::Step* step = walk.next(4096);
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->first, first);
    EXPECT_EQ(before->first, first - kBlock);
    EXPECT_EQ(before->k[0].tiles, rows.span.k_tile(0, first - kBlock));
    before = step;
  }
}

}  // namespace
}  // namespace kvmark
