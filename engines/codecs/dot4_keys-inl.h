// Scores of tiles of int8 and int4 keys by dot products of bytes: see ints-inl.h.
#include <hwy/highway.h>

#include <cmath>
#include <span>

#include "engines/codecs/dot4-inl.h"

// Compiled for one target, so this guard needs no toggle.
#if HWY_TARGET == HWY_AVX3_DL && !defined(KVMARK_CODECS_DOT4_KEYS_INL_H_)
#define KVMARK_CODECS_DOT4_KEYS_INL_H_

KVMARK_BEFORE_VNNI()
namespace kvmark {
namespace HWY_NAMESPACE {

// Side is a GroupedTile of keys. A prepared query has kTerms words for each quad of channels, each
// of them four signed bytes: a code is 256 · high + low with two terms, or one term.
template <typename Side, typename Operands>
class IntKeys;

template <int kMax, typename Codes, int kGroup, typename Operands>
class IntKeys<GroupedTile<kMax, Codes, kGroup>, Operands> {
  using Side = GroupedTile<kMax, Codes, kGroup>;
  static constexpr int kTerms = Operands::kQueryTerms;
  using Prepared = PreparedGroup<kTerms>;
  static constexpr int kParts = Operands::kParts;
  static constexpr int kStepChannels = 4 * kParts;  // of 64 bytes

 public:
  static int64_t prepared_floats(int dim) { return Prepared::words(dim, kGroup); }

  static void prepare(const float* q, int dim, float* prepared) {
    Prepared::for_each(dim, kGroup, prepared,
                       [q](int first, int n, float* words) { prepare_group(q + first, n, words); });
  }

  static void scores(const float* q, int queries, int dim, std::span<const TileRun> runs,
                     float* s) {
    const auto whole = [](const TileRun& run) { return run.rows == kTileRows; };
    for (size_t i = 0; i < runs.size(); ++i) {
      const TileRun& run = runs[i];
      if (i + 1 < runs.size() && whole(run) && whole(runs[i + 1]) &&
          runs[i + 1].at == run.at + kTileRows) {
        score_queries<2>(q, queries, dim, &run, s);
        ++i;
        continue;
      }
      score_queries<1>(q, queries, dim, &run, s);
    }
  }

 private:
  static void prepare_group(const float* q, int n, float* prepared) {
    const int vectors = (n + 15) / 16;
    const auto load = [&](int v) KVMARK_VNNI_ATTR {
      return _mm512_maskz_loadu_ps(first_lanes(n - v * 16), q + v * 16);
    };
    // As bits, whose order is that of magnitudes, so that a NaN is the largest and comes through.
    __m512i bits = _mm512_set1_epi32(std::bit_cast<int32_t>(kLeastMagnitude));
    for (int v = 0; v < vectors; ++v) {
      bits = _mm512_max_epu32(bits, _mm512_castps_si512(_mm512_abs_ps(load(v))));
    }
    const auto largest = std::bit_cast<float>(_mm512_reduce_max_epu32(bits));
    const __m512 factor = _mm512_set1_ps(query_max(kTerms) / largest);
    // What is no number is in the scale; the codes of such a group would be none either.
    const __mmask16 numbers = std::isfinite(largest) ? 0xffff : 0;
    __m512i sum = _mm512_setzero_si512();
    float* terms = prepared + Prepared::kFirstQuad;
    for (int v = 0; v < vectors; ++v) {
      const __m512i codes = _mm512_maskz_cvtps_epi32(numbers, _mm512_mul_ps(load(v), factor));
      sum = _mm512_add_epi32(sum, codes);
      store_terms(codes, terms + v * 4 * kTerms);
    }
    prepared[0] = largest / query_max(kTerms);
    prepared[1] = std::bit_cast<float>(-Codes::kBias * _mm512_reduce_add_epi32(sum));
  }

  // Four quads of channels.
  HWY_INLINE static void store_terms(__m512i codes, float* terms) {
    auto* to = reinterpret_cast<__m128i*>(terms);
    const __m128i low = _mm512_cvtepi32_epi8(codes);
    if constexpr (kTerms == 1) {
      _mm_storeu_si128(to, low);
    } else {
      // The low byte is signed too: what it lacks is carried into the high one.
      const __m512i carried = _mm512_add_epi32(codes, _mm512_set1_epi32(128));
      const __m128i high = _mm512_cvtepi32_epi8(_mm512_srai_epi32(carried, 8));
      _mm_storeu_si128(to, _mm_unpacklo_epi32(high, low));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(high, low));
    }
  }

  template <int kTiles>
  HWY_INLINE static void score_queries(const float* q, int queries, int dim, const TileRun* runs,
                                       float* s) {
    const int64_t floats = prepared_floats(dim);
    for (bool first_queries = true; queries > 0; first_queries = false) {
      const int n = next_queries(queries);
      with_queries(n, [&]<int kQueries>() KVMARK_VNNI_ATTR {
        score_tiles<kQueries, kTiles>(q, floats, dim, runs, first_queries, s);
      });
      queries -= n;
      q += n * floats;
      s += n * kBlock;
    }
  }

  template <int kQueries, int kTiles>
  HWY_INLINE static void store_scores(const __m512* sums, const TileRun& first, float* s) {
    if (first.rows == kTileRows) {
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries * kTiles; ++i) {
        _mm512_storeu_ps(s + i / kTiles * kBlock + first.at + i % kTiles * kTileRows, sums[i]);
      }
    } else {
      // The other rows of the tile belong to others or hold nothing yet.
      const __mmask16 rows = first_lanes(first.rows);
      const auto here = static_cast<__mmask16>(rows << first.first_slot % kTileRows);
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries; ++i) {
        const __m512 scores = _mm512_maskz_compress_ps(here, sums[i * kTiles]);
        _mm512_mask_storeu_ps(s + i * kBlock + first.at, rows, scores);
      }
    }
  }

  // What a register tile reads next.
  template <int kQueries, int kTiles>
  struct Cursor {
    const float* q[kQueries];  // prepared words
    const std::byte* codes[kTiles];
    const std::byte* ahead[kTiles];

    HWY_INLINE void advance(int words, int steps) {
      for (int i = 0; i < kQueries; ++i) q[i] = anew(q[i] + words);
      for (int t = 0; t < kTiles; ++t) {
        codes[t] = anew(codes[t] + steps * 64);
        ahead[t] = anew(ahead[t] + steps * 64);
      }
    }
  };

  // Scores of kQueries × kTiles · 16 pairs, kTiles runs. The tiles are whole where they are two.
  template <int kQueries, int kTiles>
  HWY_NOINLINE static void score_tiles(const float* q, int64_t q_floats, int dim,
                                       const TileRun* runs, bool first_queries, float* s) {
    const int64_t scales_bytes = Side::scales_bytes(dim);
    Cursor<kQueries, kTiles> cursor;
    for (int i = 0; i < kQueries; ++i) cursor.q[i] = anew(q + i * q_floats);
    const std::byte* scales[kTiles];
    KVMARK_UNROLL(2)
    for (int t = 0; t < kTiles; ++t) {
      const std::byte* ahead = ahead_of(runs[t], first_queries);
      scales[t] = anew(runs[t].tiles);
      cursor.codes[t] = anew(runs[t].tiles + scales_bytes);
      cursor.ahead[t] = anew(ahead + scales_bytes);
    }
    for (int t = 0; t < kTiles; ++t) {
      prefetch_lines(ahead_of(runs[t], first_queries), scales_bytes);
    }
    __m512 sums[kQueries * kTiles];  // (kQueries, kTiles)
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries * kTiles; ++i) sums[i] = _mm512_setzero_ps();
    for (int left = dim; left > 0; left -= kGroup) {
      add_group<kQueries, kTiles>(std::min(kGroup, left), scales, cursor, sums);
      for (int t = 0; t < kTiles; ++t) scales[t] += kTileRows * sizeof(uint16_t);
    }
    store_scores<kQueries, kTiles>(sums, runs[0], s);
  }

  // The share of one group of n channels.
  template <int kQueries, int kTiles>
  HWY_INLINE static void add_group(int n, const std::byte* const* scales,
                                   Cursor<kQueries, kTiles>& cursor, __m512* sums) {
    __m512i dots[kQueries * kTiles][kTerms];
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries * kTiles; ++i) {
      dots[i][0] = _mm512_setzero_si512();
      dots[i][kTerms - 1] = broadcast4(cursor.q[i / kTiles] + 1);  // the correction
    }
    cursor.advance(Prepared::kFirstQuad, 0);
    // Unrolled, or gcc 12 copies every sum in every step.
    constexpr int kStepsAtOnce = 32 / kStepChannels;
    constexpr int kStepWords = kParts * kTerms;
    const int words = Prepared::kFirstQuad + (n + kStepChannels - 1) / kStepChannels * kStepWords;
    for (; n >= 32; n -= 32) {
      KVMARK_UNROLL(8)
      for (int step = 0; step < kStepsAtOnce; ++step) dot_step(cursor, step, dots);
      cursor.advance(kStepsAtOnce * kStepWords, kStepsAtOnce);
    }
    for (; n > 0; n -= kStepChannels) {
      dot_step(cursor, 0, dots);
      cursor.advance(kStepWords, 1);
    }
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries * kTiles; ++i) {
      const __m512 dot = _mm512_cvtepi32_ps(total<kTerms>(dots[i]));
      const __m512 scaled = _mm512_mul_ps(dot, load_scales(scales[i % kTiles]));
      sums[i] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(cursor.q[i / kTiles][-words]), sums[i]);
    }
  }

  // The channels of the cursor's 64 bytes number `step`.
  template <int kQueries, int kTiles>
  HWY_INLINE static void dot_step(const Cursor<kQueries, kTiles>& cursor, int step,
                                  __m512i (*dots)[kTerms]) {
    __m512i keys[kTiles][kParts];
    for (int t = 0; t < kTiles; ++t) {
      hwy::Prefetch(cursor.ahead[t] + step * 64);
      Operands::keys(load_bytes(cursor.codes[t] + step * 64), keys[t]);
    }
    KVMARK_UNROLL(16)
    for (int part = 0; part < kParts; ++part) {
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries; ++i) {
        KVMARK_UNROLL(16)
        for (int term = 0; term < kTerms; ++term) {
          const __m512i query = broadcast4(cursor.q[i] + (step * kParts + part) * kTerms + term);
          KVMARK_UNROLL(16)
          for (int t = 0; t < kTiles; ++t) {
            __m512i& dot = dots[i * kTiles + t][term];
            dot = dot4(dot, keys[t][part], query);
          }
        }
      }
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
KVMARK_AFTER_VNNI()

#endif  // HWY_AVX3_DL, include guard
