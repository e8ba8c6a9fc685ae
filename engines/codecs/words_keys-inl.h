// Scores of tiles of int8 and int4 keys by products of words: see ints-inl.h.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#if defined(KVMARK_CODECS_WORDS_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_WORDS_KEYS_INL_H_
#undef KVMARK_CODECS_WORDS_KEYS_INL_H_
#else
#define KVMARK_CODECS_WORDS_KEYS_INL_H_
#endif

#include "engines/codecs/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// Side is a GroupedTile of keys.
template <typename Side, typename Operands>
class IntKeys;

template <int kMax, typename Codes, int kGroup, typename Operands>
class IntKeys<GroupedTile<kMax, Codes, kGroup>, Operands> {
  using Side = GroupedTile<kMax, Codes, kGroup>;
  using Prepared = PreparedGroup<kQuadWords>;
  static_assert(kGroup * 2.0 * Codes::kBias * kWordMax < INT32_MAX,
                "a group's products are summed");
  static constexpr int kParts = Operands::kParts;
  static constexpr int kStepChannels = 4 * kParts;  // of 64 bytes, four for each row
  static constexpr int kStepWords = kParts * kQuadWords;
  static constexpr int kVectors = kWordVectors;
  static constexpr int kRowsAtOnce = kVectors * kLanes;

 public:
  static int64_t prepared_floats(int dim) { return Prepared::words(dim, kGroup); }

  static void prepare(const float* q, int dim, float* prepared) {
    Prepared::for_each(dim, kGroup, prepared, [q](int first, int n, float* words) HWY_ATTR {
      prepare_group(q + first, n, words);
    });
  }

  static void scores(const float* q, int queries, int dim, std::span<const TileRun> runs,
                     float* s) {
    const int64_t floats = prepared_floats(dim);
    for (bool first_queries = true; queries > 0; first_queries = false) {
      const int n = next_queries(queries);
      with_queries(n, [&]<int kQueries>() HWY_ATTR {
        for (const TileRun& run : runs) {
          score_run<kQueries>(q, floats, dim, run, ahead_of(run, first_queries), s + run.at);
        }
      });
      queries -= n;
      q += n * floats;
      s += n * kBlock;
    }
  }

 private:
  static void prepare_group(const float* q, int n, float* prepared) {
    const FloatTag tag;
    const auto load_from = [q, n](int d) HWY_ATTR {
      return d + kLanes <= n ? load(q + d) : load_first(q + d, n - d);
    };
    // As bits, whose order is that of magnitudes, so that a NaN is the largest and comes through.
    UnsignedVec bits = hn::Set(UnsignedTag(), std::bit_cast<uint32_t>(kLeastMagnitude));
    for (int d = 0; d < n; d += kLanes) {
      bits = hn::Max(bits, hn::BitCast(UnsignedTag(), hn::Abs(load_from(d))));
    }
    const auto largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(UnsignedTag(), bits)));
    const FloatVec factor = hn::Set(tag, kWordMax / largest);
    // What is no number is in the scale; the codes of such a group would be none either.
    const int numbers = std::isfinite(largest) ? n : 0;
    IntVec sum = hn::Zero(IntTag());
    for (int d = 0; d < 4 * Prepared::quads(n); d += kLanes) {
      const IntVec codes =
          d < numbers ? hn::NearestInt(hn::Mul(load_from(d), factor)) : hn::Zero(IntTag());
      sum = hn::Add(sum, codes);
      hn::StoreU(hn::BitCast(tag, paired(codes)), tag, prepared + Prepared::kFirstQuad + d);
    }
    prepared[0] = largest / kWordMax;
    prepared[1] = std::bit_cast<float>(
        hn::GetLane(hn::Mul(hn::SumOfLanes(IntTag(), sum), hn::Set(IntTag(), -Codes::kBias))));
  }

  // s: of the run's first row; kBlock floats a query.
  template <int kQueries>
  HWY_INLINE static void score_run(const float* q, int64_t q_floats, int dim, const TileRun& run,
                                   const std::byte* ahead, float* s) {
    prefetch_lines(ahead, Side::scales_bytes(dim));
    if (run.rows == kTileRows) {
      for (int row = 0; row < kTileRows; row += kRowsAtOnce) {
        score_rows<kQueries>(q, q_floats, dim, run.tiles, row, ahead, s + row);
      }
      return;
    }
    // The other rows of the tile belong to others or hold nothing yet.
    float all[kQueries * kBlock];
    for (int row = 0; row < kTileRows; row += kRowsAtOnce) {
      score_rows<kQueries>(q, q_floats, dim, run.tiles, row, ahead, all + row);
    }
    for (int i = 0; i < kQueries; ++i) {
      std::copy_n(all + i * kBlock + run.first_slot % kTileRows, run.rows, s + i * kBlock);
    }
  }

  // Scores of kRowsAtOnce rows of a tile from `row` on.
  template <int kQueries>
  HWY_NOINLINE static void score_rows(const float* q, int64_t q_floats, int dim,
                                      const std::byte* tile, int row, const std::byte* ahead,
                                      float* s) {
    const FloatTag tag;
    const std::byte* scales = tile + row * sizeof(uint16_t);
    const std::byte* codes = tile + Side::scales_bytes(dim) + row * sizeof(uint32_t);
    ahead += Side::scales_bytes(dim);
    FloatVec sums[kQueries][kVectors];
    KVMARK_UNROLL(4)
    for (auto& of_query : sums) {
      KVMARK_UNROLL(2)
      for (FloatVec& sum : of_query) sum = hn::Zero(tag);
    }
    for (int left = dim; left > 0; left -= kGroup) {
      const int n = std::min(kGroup, left);
      WordProducts dots[kQueries][kVectors];
      add_products<kQueries>(q, q_floats, n, codes, ahead, dots);
      KVMARK_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        const FloatVec scale = load(reinterpret_cast<const hwy::float16_t*>(scales) + v * kLanes);
        KVMARK_UNROLL(4)
        for (int i = 0; i < kQueries; ++i) {
          const float* group = q + i * q_floats;
          const IntVec correction = hn::BitCast(IntTag(), hn::Set(tag, group[1]));
          const FloatVec dot = hn::ConvertTo(tag, hn::Add(dots[i][v].total(), correction));
          sums[i][v] = hn::MulAdd(hn::Mul(dot, scale), hn::Set(tag, group[0]), sums[i][v]);
        }
      }
      q += Prepared::words(n);
      scales += kTileRows * sizeof(uint16_t);
      const int steps = (n + kStepChannels - 1) / kStepChannels;
      codes += steps * 64;
      ahead += steps * 64;
    }
    KVMARK_UNROLL(4)
    for (int i = 0; i < kQueries; ++i) {
      KVMARK_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(sums[i][v], tag, s + i * kBlock + v * kLanes);
      }
    }
  }

  // The products of a group of n channels.
  template <int kQueries>
  HWY_INLINE static void add_products(const float* q, int64_t q_floats, int n,
                                      const std::byte* codes, const std::byte* ahead,
                                      WordProducts (*dots)[kVectors]) {
    KVMARK_UNROLL(4)
    for (int i = 0; i < kQueries; ++i) {
      KVMARK_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) dots[i][v].clear();
    }
    q += Prepared::kFirstQuad;
    for (; n > 0; n -= kStepChannels) {
      hwy::Prefetch(ahead);
      WordVec bytes[kVectors];
      KVMARK_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) bytes[v] = load_words(codes + v * kLanes * 4);
      add_quad<kQueries, 0>(q, q_floats, bytes, dots);
      if constexpr (kParts == 2) add_quad<kQueries, 1>(q + kQuadWords, q_floats, bytes, dots);
      q += kStepWords;
      codes += 64;
      ahead += 64;
    }
  }

  template <int kQueries, int kPart>
  HWY_INLINE static void add_quad(const float* q, int64_t q_floats, const WordVec* bytes,
                                  WordProducts (*dots)[kVectors]) {
    WordVec keys[kVectors][2];
    KVMARK_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) Operands::template keys<kPart>(bytes[v], keys[v]);
    KVMARK_UNROLL(2)
    for (int pair = 0; pair < 2; ++pair) {
      KVMARK_UNROLL(4)
      for (int i = 0; i < kQueries; ++i) {
        const WordVec query = broadcast_words(q + i * q_floats + pair);
        KVMARK_UNROLL(2)
        for (int v = 0; v < kVectors; ++v) dots[i][v].add(keys[v][pair], query);
      }
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
