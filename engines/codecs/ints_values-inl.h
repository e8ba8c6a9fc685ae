// Sums over tiles of int8 and int4 values, weighted by probabilities: see ints-inl.h.
#include <hwy/highway.h>

#include <array>
#include <span>

#include "engines/codecs/dot4-inl.h"

// Compiled for one target, so this guard needs no toggle.
#if HWY_TARGET == HWY_AVX3_DL && !defined(KVMARK_CODECS_INTS_VALUES_INL_H_)
#define KVMARK_CODECS_INTS_VALUES_INL_H_

KVMARK_BEFORE_VNNI()
namespace kvmark {
namespace HWY_NAMESPACE {

// The rows of a run as those of its tile: `rows` has a bit for each, the first has its probability
// at `at`.
struct ValueTile {
  const std::byte* tile;
  const std::byte* ahead;
  __mmask16 rows;
  int at;
};

// Side is a GroupedTile of values. With the scale of a row and group of channels part of the weight
// w(query, row) = p(query, row) · scale(row), a group's sums are over codes. For each query and
// group the weights of a block are quantized by their largest: other rows' scales don't matter
// where p is 0.
template <typename Side, typename Operands>
class IntValues;

template <int kMax, typename Codes, int kGroup, typename Operands>
class IntValues<GroupedTile<kMax, Codes, kGroup>, Operands> {
  using Side = GroupedTile<kMax, Codes, kGroup>;
  static constexpr int kTerms = Operands::kWeightTerms;
  static constexpr int kParts = Operands::kParts;
  static constexpr int kUnit = Codes::kUnit;
  static constexpr int kUnitsAtOnce = 2 / kParts;

 public:
  static void accumulate(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         float* o) {
    const auto whole = [](const TileRun& run) { return run.rows == kTileRows; };
    ValueTile tiles[kBlock];
    for (size_t i = 0; i < runs.size(); ++i) tiles[i] = tile_of(runs[i]);
    if (runs.size() == 2 && whole(runs[0]) && whole(runs[1])) {
      add_queries<true>(p, queries, dim, tiles, 2, o);
    } else {
      add_queries<false>(p, queries, dim, tiles, static_cast<int>(runs.size()), o);
    }
  }

 private:
  HWY_INLINE static ValueTile tile_of(const TileRun& run) {
    const auto rows = static_cast<__mmask16>(first_lanes(run.rows) << run.first_slot % kTileRows);
    // To prefetch what is at hand costs less than to ask whether to.
    return {run.tiles, run.ahead ? run.ahead : run.tiles, rows, run.at};
  }

  template <bool kWhole>
  HWY_INLINE static void add_queries(const float* p, int queries, int dim, ValueTile* tiles,
                                     int count, float* o) {
    while (queries > 0) {
      const int n = next_queries(queries);
      with_queries(n, [&]<int kQueries>()
                          HWY_ATTR { add_tiles<kQueries, kWhole>(p, dim, tiles, count, o); });
      for (int t = 0; t < count; ++t) tiles[t].ahead = tiles[t].tile;  // once is enough
      queries -= n;
      p += n * kBlock;
      o += int64_t{n} * dim;
    }
  }

  // The weights of kQueries queries for one group: w ≈ step · (256 · high + low), or step · term.
  // Tiles go in pairs, of which the last may lack its second.
  template <int kQueries, bool kWhole>
  struct Weights {
    static constexpr int kPairs = kWhole ? 1 : kBlock / 2;
    __m512 steps[kQueries];  // the query's, in each lane
    alignas(64) uint8_t terms[kQueries][kPairs][kTerms][2][kTileRows];
  };

  // kWhole: `tiles` are two of sixteen rows each.
  template <int kQueries, bool kWhole>
  HWY_NOINLINE static void add_tiles(const float* p, int dim, const ValueTile* tiles, int count,
                                     float* o) {
    if (kWhole) count = 2;
    const int64_t codes_at = Side::scales_bytes(dim);
    for (int t = 0; t < count; ++t) prefetch_lines(tiles[t].ahead, codes_at);
    // Quantizing is one long chain of operations, so the next group's stands ahead of the sums of
    // this one, to run beside them.
    Weights<kQueries, kWhole> weights[2];
    quantize<kQueries, kWhole>(p, 0, tiles, count, weights[0]);
    for (int first = 0, group = 0; first < dim; first += kGroup, ++group) {
      if (first + kGroup < dim) {
        quantize<kQueries, kWhole>(p, group + 1, tiles, count, weights[(group + 1) % 2]);
      }
      const auto& own = weights[group % 2];
      const int end = std::min(first + kGroup, dim);
      int d = first;
      for (; d + kUnitsAtOnce * kUnit <= end; d += kUnitsAtOnce * kUnit) {
        add_units<kQueries, kWhole>(own, d, codes_at, dim, tiles, count, o);
      }
      for (; d < end; d += kUnit) {
        add_unit<kQueries, kWhole>(own, d, std::min(kUnit, end - d), codes_at, dim, tiles, count,
                                   o);
      }
    }
  }

  template <bool kWhole>
  HWY_INLINE static __m512 load_rows(const float* p, const ValueTile& tile) {
    if (kWhole || tile.rows == 0xffff) return _mm512_loadu_ps(p + tile.at);
    return _mm512_maskz_expandloadu_ps(tile.rows, p + tile.at);
  }

  template <int kQueries, bool kWhole>
  HWY_INLINE static void quantize(const float* p, int group, const ValueTile* tiles, int count,
                                  Weights<kQueries, kWhole>& to) {
    __m512 weights[kQueries][2 * Weights<kQueries, kWhole>::kPairs];
    // As bits, whose order is that of the numbers, so that a NaN is the largest and comes through.
    __m512i largest[kQueries];
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      largest[i] = _mm512_set1_epi32(std::bit_cast<int32_t>(kLeastMagnitude));
      if (count % 2 != 0) weights[i][count] = _mm512_setzero_ps();
    }
    KVMARK_UNROLL(2)
    for (int t = 0; t < count; ++t) {
      // What lies in rows outside the run may be no number.
      const __m512 stored = load_scales(tiles[t].tile + int64_t{group} * kTileRows * 2);
      const __m512 scales = kWhole ? stored : _mm512_maskz_mov_ps(tiles[t].rows, stored);
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries; ++i) {
        weights[i][t] = _mm512_mul_ps(load_rows<kWhole>(p + i * kBlock, tiles[t]), scales);
        largest[i] = _mm512_max_epu32(largest[i], _mm512_castps_si512(weights[i][t]));
      }
    }
    const __m512 most = max_of_each<kQueries>(largest);
    const __m512 factors = _mm512_div_ps(_mm512_set1_ps(weight_max(kTerms)), most);
    const __m512 steps =
        _mm512_mul_ps(most, _mm512_set1_ps(1 / (weight_max(kTerms) * Operands::kValueUnit)));
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      to.steps[i] = quarter(steps, i);
      const __m512 factor = quarter(factors, i);
      for (int t = 0; t < count; t += 2) {
        store_terms(_mm512_cvtps_epi32(_mm512_mul_ps(weights[i][t], factor)),
                    _mm512_cvtps_epi32(_mm512_mul_ps(weights[i][t + 1], factor)),
                    &to.terms[i][t / 2][0][0][0]);
      }
    }
  }

  // The largest lane of x[i] in each of the four lanes of quarter i.
  template <int kQueries>
  HWY_INLINE static __m512 max_of_each(const __m512i* x) {
    static_assert(kQueries <= 4);
    const auto halves = [](__m512i a, __m512i b) KVMARK_VNNI_ATTR {
      return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xee));
    };
    const __m512i a = halves(x[0], x[kQueries > 1 ? 1 : 0]);
    const __m512i b = kQueries > 2 ? halves(x[kQueries > 2 ? 2 : 0], x[kQueries > 3 ? 3 : 0]) : a;
    __m512i most =
        _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
    most = _mm512_max_epu32(most, _mm512_shuffle_epi32(most, _MM_PERM_BADC));
    most = _mm512_max_epu32(most, _mm512_shuffle_epi32(most, _MM_PERM_CDAB));
    return _mm512_castsi512_ps(most);
  }
  // Lanes 4 · i … 4 · i + 3 of x, in each quarter.
  HWY_INLINE static __m512 quarter(__m512 x, int i) {
    if (i == 0) return _mm512_shuffle_f32x4(x, x, 0x00);
    if (i == 1) return _mm512_shuffle_f32x4(x, x, 0x55);
    if (i == 2) return _mm512_shuffle_f32x4(x, x, 0xaa);
    return _mm512_shuffle_f32x4(x, x, 0xff);
  }

  // Of a pair of tiles: the bytes of each term, (kTerms, 2, 16 rows), the high ones first.
  HWY_INLINE static void store_terms(__m512i first, __m512i second, uint8_t* terms) {
    alignas(64) static constexpr auto kBytes = [] {
      std::array<uint8_t, 64> bytes{};
      for (int i = 0; i < 32 * kTerms; ++i) {
        bytes[i] = static_cast<uint8_t>(i % 32 * 4 + (kTerms - 1 - i / 32));
      }
      return bytes;
    }();
    const __m512i chosen =
        _mm512_permutex2var_epi8(first, _mm512_load_si512(kBytes.data()), second);
    if constexpr (kTerms == 2) {
      _mm512_store_si512(terms, chosen);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(terms), _mm512_castsi512_si256(chosen));
    }
  }

  // o of 32 channels from d on.
  template <int kQueries, bool kWhole>
  HWY_INLINE static void add_units(const Weights<kQueries, kWhole>& quantized, int d,
                                   int64_t codes_at, int dim, const ValueTile* tiles, int count,
                                   float* o) {
    constexpr int kUnitBytes = 4 * 64;
    // Read as they were stored: gcc 12 would rather take dozens of broadcasts out of the vectors.
    const auto& weights = *opaque(&quantized);
    const int64_t first = codes_at + int64_t{d / kUnit} * kUnitBytes;
    __m512i dots[kQueries][2][kTerms];
    zero<kQueries>(dots);
    KVMARK_UNROLL(2)
    for (int t = 0; t < count; ++t) {
      const std::byte* codes = opaque(tiles[t].tile + first);
      const std::byte* ahead = opaque(tiles[t].ahead + first);
      KVMARK_UNROLL(4)
      for (int quad = 0; quad < 4; ++quad) {
        __m512i values[2];
        KVMARK_UNROLL(2)
        for (int u = 0; u < kUnitsAtOnce; ++u) {
          const int at = u * kUnitBytes + quad * 64;
          hwy::Prefetch(ahead + at);
          Operands::values(load_bytes(codes + at), values + u * kParts);
        }
        add_quad<kQueries, kWhole>(weights, t, quad, values, dots);
      }
    }
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      float* to = o + int64_t{i} * dim + d;
      KVMARK_UNROLL(2)
      for (int v = 0; v < 2; ++v) {
        const __m512 sum = _mm512_cvtepi32_ps(total<kTerms>(dots[i][v]));
        const __m512 before = _mm512_loadu_ps(to + v * 16);
        _mm512_storeu_ps(to + v * 16, _mm512_fmadd_ps(sum, weights.steps[i], before));
      }
    }
  }

  // o of a unit's n channels from d on.
  template <int kQueries, bool kWhole>
  HWY_NOINLINE static void add_unit(const Weights<kQueries, kWhole>& weights, int d, int n,
                                    int64_t codes_at, int dim, const ValueTile* tiles, int count,
                                    float* o) {
    const int width = (n + kParts - 1) / kParts;  // words of four rows
    const auto words = first_lanes(width);
    __m512i dots[kQueries][2][kTerms];
    zero<kQueries>(dots);
    for (int t = 0; t < count; ++t) {
      const int64_t first = codes_at + int64_t{d / kParts} * kTileRows;
      for (int quad = 0; quad < 4; ++quad) {
        const int64_t at = first + quad * 4 * width;
        hwy::Prefetch(tiles[t].ahead + at);
        __m512i values[2] = {};
        Operands::values(_mm512_maskz_loadu_epi32(words, tiles[t].tile + at), values);
        add_quad<kQueries, kWhole>(weights, t, quad, values, dots);
      }
    }
    for (int i = 0; i < kQueries; ++i) {
      for (int part = 0; part < kParts; ++part) {
        float* to = o + int64_t{i} * dim + d + part * width;
        const auto here = first_lanes(std::min(width, n - part * width));
        const __m512 sum = _mm512_cvtepi32_ps(total<kTerms>(dots[i][part]));
        const __m512 before = _mm512_maskz_loadu_ps(here, to);
        _mm512_mask_storeu_ps(to, here, _mm512_fmadd_ps(sum, weights.steps[i], before));
      }
    }
  }

  // Four rows of tile t.
  template <int kQueries, bool kWhole>
  HWY_INLINE static void add_quad(const Weights<kQueries, kWhole>& weights, int t, int quad,
                                  const __m512i* values, __m512i (*dots)[2][kTerms]) {
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      KVMARK_UNROLL(16)
      for (int term = 0; term < kTerms; ++term) {
        const __m512i weight = broadcast4(&weights.terms[i][t / 2][term][t % 2][quad * 4]);
        KVMARK_UNROLL(16)
        for (int v = 0; v < 2; ++v) dots[i][v][term] = dot4(dots[i][v][term], weight, values[v]);
      }
    }
  }

  template <int kQueries>
  HWY_INLINE static void zero(__m512i (*dots)[2][kTerms]) {
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries * 2 * kTerms; ++i) {
      dots[i / (2 * kTerms)][i / kTerms % 2][i % kTerms] = _mm512_setzero_si512();
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
KVMARK_AFTER_VNNI()

#endif  // HWY_AVX3_DL, include guard
