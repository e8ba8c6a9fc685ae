// Sums over tiles of int8 and int4 values, weighted by probabilities, by products of words: see
// ints-inl.h.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#if defined(KVMARK_CODECS_WORDS_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_WORDS_VALUES_INL_H_
#undef KVMARK_CODECS_WORDS_VALUES_INL_H_
#else
#define KVMARK_CODECS_WORDS_VALUES_INL_H_
#endif

#include "engines/codecs/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// Side is a GroupedTile of values. Weights are as in dot4_values-inl.h: the scale of a row and
// group is part of w(query, row) = p(query, row) · scale(row), and for each query and group those
// of a block are quantized by their largest.
template <typename Side, typename Operands>
class IntValues;

template <int kMax, typename Codes, int kGroup, typename Operands>
class IntValues<GroupedTile<kMax, Codes, kGroup>, Operands> {
  using Side = GroupedTile<kMax, Codes, kGroup>;
  static constexpr int kParts = Operands::kParts;
  static constexpr int kUnit = Codes::kUnit;
  // Of a unit: four bytes, rows of a quad, in each of kParts channels.
  static constexpr int kColumns = kUnit / kParts;
  static constexpr int kQuadBytes = kColumns * 4;
  static constexpr int kUnitBytes = kTileRows / 4 * kQuadBytes;
  // A register tile has vectors of columns, and sums for each of their parts.
  static constexpr int kVectors = std::max(1, kWordVectors / kParts);
  static constexpr int kSums = kVectors * kParts;

 public:
  static void accumulate(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         float* o) {
    for (bool first_queries = true; queries > 0; first_queries = false) {
      const int n = next_queries(queries);
      with_queries(
          n, [&]<int kQueries>() HWY_ATTR { add_block<kQueries>(p, dim, runs, first_queries, o); });
      queries -= n;
      p += n * kBlock;
      o += int64_t{n} * dim;
    }
  }

 private:
  // The rows of a run, in their tile.
  struct Tile {
    const hwy::float16_t* scales;  // (groups, kTileRows)
    const std::byte* codes;
    const std::byte* ahead;
    const float* p;  // of the tile's rows; `p_stride` floats a query
    int64_t p_stride;
    const int32_t* mask;  // of kTileRows: all ones where a row is one of the run
  };
  // What a run has that is not a whole tile: zeros for the other rows, where scales may be no
  // numbers.
  template <int kQueries>
  struct PartialRun {
    int32_t mask[kTileRows];
    float p[kQueries][kTileRows];
  };
  alignas(64) static constexpr int32_t kWholeMask[kTileRows] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                                -1, -1, -1, -1, -1, -1, -1, -1};

  // The weights of kQueries queries for one group: w ≈ step · word. A quad of rows has kQuadWords.
  template <int kQueries>
  struct Weights {
    float steps[kQueries];
    alignas(64) float words[kBlock][kQueries][kTileRows];  // of each run
  };

  template <int kQueries>
  HWY_INLINE static void add_block(const float* p, int dim, std::span<const TileRun> runs,
                                   bool first_queries, float* o) {
    PartialRun<kQueries> parts[kBlock];
    Tile all[kBlock];
    for (size_t t = 0; t < runs.size(); ++t) {
      all[t] = tile_of<kQueries>(runs[t], p, dim, ahead_of(runs[t], first_queries), parts[t]);
    }
    const std::span<const Tile> tiles(all, runs.size());
    // Quantizing is one long chain of operations, so the next group's stands ahead of the sums of
    // this one, to run beside them.
    Weights<kQueries> two[2];
    quantize(tiles, 0, two[0]);
    for (int first = 0, group = 0; first < dim; first += kGroup, ++group) {
      if (first + kGroup < dim) quantize(tiles, group + 1, two[(group + 1) % 2]);
      const Weights<kQueries>& weights = two[group % 2];
      const int end = std::min(first + kGroup, dim);
      int d = first;
      for (; d + kUnit <= end; d += kUnit) {
        add_unit<kQueries>(weights, tiles, int64_t{d / kUnit} * kUnitBytes, o + d, dim);
      }
      if (d < end) add_last_unit<kQueries>(weights, tiles, d, end - d, o + d, dim);
    }
  }

  template <int kQueries>
  HWY_INLINE static Tile tile_of(const TileRun& run, const float* p, int dim,
                                 const std::byte* ahead, PartialRun<kQueries>& part) {
    const int64_t scales_bytes = Side::scales_bytes(dim);
    prefetch_lines(ahead, scales_bytes);
    Tile tile{.scales = reinterpret_cast<const hwy::float16_t*>(run.tiles),
              .codes = run.tiles + scales_bytes,
              .ahead = ahead + scales_bytes,
              .p = p + run.at,
              .p_stride = kBlock,
              .mask = kWholeMask};
    if (run.rows < kTileRows) {
      part = {};
      const int slot = run.first_slot % kTileRows;
      std::fill_n(part.mask + slot, run.rows, -1);
      for (int i = 0; i < kQueries; ++i) {
        std::copy_n(tile.p + i * kBlock, run.rows, part.p[i] + slot);
      }
      tile.p = part.p[0];
      tile.p_stride = kTileRows;
      tile.mask = part.mask;
    }
    return tile;
  }

  // (kQueries, tiles) probabilities · scales of a group → words.
  template <int kQueries>
  HWY_NOINLINE static void quantize(std::span<const Tile> tiles, int group, Weights<kQueries>& to) {
    const FloatTag tag;
    // As bits, whose order is that of the numbers, so that a NaN is the largest and comes through.
    UnsignedVec largest[kQueries];
    KVMARK_UNROLL(4)
    for (UnsignedVec& bits : largest) {
      bits = hn::Set(UnsignedTag(), std::bit_cast<uint32_t>(kLeastMagnitude));
    }
    for (size_t t = 0; t < tiles.size(); ++t) {
      const Tile& tile = tiles[t];
      float(*weights)[kTileRows] = to.words[t];  // (kQueries, kTileRows)
      KVMARK_UNROLL(4)
      for (int v = 0; v < kTileVectors; ++v) {
        const FloatVec mask = hn::BitCast(tag, hn::LoadU(IntTag(), tile.mask + v * kLanes));
        const FloatVec scale = hn::And(mask, load(tile.scales + group * kTileRows + v * kLanes));
        KVMARK_UNROLL(4)
        for (int i = 0; i < kQueries; ++i) {
          const FloatVec weight = hn::Mul(load(tile.p + i * tile.p_stride + v * kLanes), scale);
          hn::Store(weight, tag, weights[i] + v * kLanes);
          largest[i] = hn::Max(largest[i], hn::BitCast(UnsignedTag(), weight));
        }
      }
    }
    KVMARK_UNROLL(4)
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec most = hn::BitCast(tag, hn::MaxOfLanes(UnsignedTag(), largest[i]));
      to.steps[i] = hn::GetLane(most) * (1 / kWordMax);
      const FloatVec factor = hn::Div(hn::Set(tag, kWordMax), most);
      for (size_t t = 0; t < tiles.size(); ++t) {
        KVMARK_UNROLL(4)
        for (int v = 0; v < kTileVectors; ++v) {
          float* words = to.words[t][i] + v * kLanes;
          // Behind the point of 2^23 + x the bits are those of x, rounded.
          const FloatVec x = hn::MulAdd(hn::Load(tag, words), factor, hn::Set(tag, 0x1p23f));
          hn::Store(hn::BitCast(tag, paired(hn::BitCast(IntTag(), x))), tag, words);
        }
      }
    }
  }

  // o of the channels of the unit at byte `at` of the codes. o: `stride` floats a query.
  template <int kQueries>
  HWY_INLINE static void add_unit(const Weights<kQueries>& weights, std::span<const Tile> tiles,
                                  int64_t at, float* o, int stride) {
    for (int column = 0; column < kColumns; column += kVectors * kLanes) {
      add_columns<kQueries>(weights, tiles, at + column * 4, o + column, stride);
    }
  }

  // The same of kVectors vectors of columns, from byte `at` and channel o on.
  template <int kQueries>
  HWY_NOINLINE static void add_columns(const Weights<kQueries>& weights,
                                       std::span<const Tile> tiles, int64_t at, float* o,
                                       int stride) {
    const FloatTag tag;
    WordProducts sums[kQueries][kSums];
    KVMARK_UNROLL(4)
    for (int i = 0; i < kQueries; ++i) {
      KVMARK_UNROLL(2)
      for (int k = 0; k < kSums; ++k) sums[i][k].clear();
    }
    for (size_t t = 0; t < tiles.size(); ++t) {
      const float* words = weights.words[t][0];
      const std::byte* codes = tiles[t].codes + at;
      const std::byte* ahead = tiles[t].ahead + at;
      KVMARK_UNROLL(4)
      for (int quad = 0; quad < kTileRows / 4; ++quad) {
        hwy::Prefetch(ahead + quad * kQuadBytes);
        add_quad<kQueries>(words + quad * kQuadWords, codes + quad * kQuadBytes, sums);
      }
    }
    KVMARK_UNROLL(4)
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec step = hn::Set(tag, weights.steps[i]);
      KVMARK_UNROLL(2)
      for (int k = 0; k < kSums; ++k) {
        float* to = o + i * int64_t{stride} + k % kParts * kColumns + k / kParts * kLanes;
        const FloatVec sum = hn::ConvertTo(tag, sums[i][k].total());
        hn::StoreU(hn::MulAdd(sum, step, load(to)), tag, to);
      }
    }
  }

  // Four rows of a tile, whose words stand at `words`; kTileRows a query.
  template <int kQueries>
  HWY_INLINE static void add_quad(const float* words, const std::byte* codes,
                                  WordProducts (*sums)[kSums]) {
    WordVec values[kSums][2];
    KVMARK_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      const WordVec bytes = load_words(codes + v * kLanes * 4);
      Operands::template values<0>(bytes, values[v * kParts]);
      if constexpr (kParts == 2) Operands::template values<1>(bytes, values[v * kParts + 1]);
    }
    KVMARK_UNROLL(2)
    for (int pair = 0; pair < 2; ++pair) {
      KVMARK_UNROLL(4)
      for (int i = 0; i < kQueries; ++i) {
        const WordVec weight = broadcast_words(words + i * kTileRows + pair);
        KVMARK_UNROLL(2)
        for (int k = 0; k < kSums; ++k) sums[i][k].add(values[k][pair], weight);
      }
    }
  }

  // o of the last n < kUnit channels of a row: the codes are brought into the places of a unit.
  template <int kQueries>
  HWY_NOINLINE static void add_last_unit(const Weights<kQueries>& weights,
                                         std::span<const Tile> tiles, int d, int n, float* o,
                                         int dim) {
    const int width = (n + kParts - 1) / kParts;  // columns
    std::byte codes[kBlock][kUnitBytes];
    Tile padded[kBlock];
    for (size_t t = 0; t < tiles.size(); ++t) {
      std::memset(codes[t], 0, kUnitBytes);
      const std::byte* from = tiles[t].codes + int64_t{d / kParts} * kTileRows;
      for (int quad = 0; quad < kTileRows / 4; ++quad) {
        std::memcpy(codes[t] + quad * kQuadBytes, from + quad * width * 4, width * 4);
      }
      padded[t] = {.codes = codes[t], .ahead = codes[t]};
    }
    float sums[kQueries][kUnit] = {};
    // The channels of a part are neighbours in both.
    const auto for_each_part = [&](const auto& visit) {
      for (int i = 0; i < kQueries; ++i) {
        for (int first = 0; first < n; first += width) {
          visit(o + int64_t{i} * dim + first, sums[i] + first / width * kColumns,
                std::min(width, n - first));
        }
      }
    };
    for_each_part([](float* own, float* sum, int count) { std::copy_n(own, count, sum); });
    add_unit<kQueries>(weights, {padded, tiles.size()}, 0, sums[0], kUnit);
    for_each_part([](float* own, float* sum, int count) { std::copy_n(sum, count, own); });
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
