// Sums over tiles of int8 and int4 values, weighted by probabilities, by dot products of bytes: see
// ints-inl.h.
#include <hwy/highway.h>

#include <array>
#include <span>

#include "engines/codecs/dot4-inl.h"

// Compiled for one target, so this guard needs no toggle.
#if HWY_TARGET == HWY_AVX3_DL && !defined(KVMARK_CODECS_DOT4_VALUES_INL_H_)
#define KVMARK_CODECS_DOT4_VALUES_INL_H_

KVMARK_BEFORE_VNNI()
namespace kvmark {
namespace HWY_NAMESPACE {

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
    if (runs.size() == 2 && whole(runs[0]) && whole(runs[1])) {
      add_queries<true>(p, queries, dim, runs, o);
    } else {
      add_queries<false>(p, queries, dim, runs, o);
    }
  }

 private:
  // A block's probabilities and rows, and where its sums go.
  struct Block {
    const float* p;  // (queries, kBlock)
    float* o;        // (queries, dim)
    int dim;
    const TileRun* runs;
    int count;
    bool first_queries;

    const std::byte* ahead(int run) const { return ahead_of(runs[run], first_queries); }
  };

  // kWhole: the runs are two of sixteen rows each.
  template <bool kWhole>
  HWY_INLINE static void add_queries(const float* p, int queries, int dim,
                                     std::span<const TileRun> runs, float* o) {
    Block block{p, o, dim, runs.data(), kWhole ? 2 : static_cast<int>(runs.size()), true};
    while (queries > 0) {
      const int n = next_queries(queries);
      with_queries(n, [&]<int kQueries>() KVMARK_VNNI_ATTR { add_block<kQueries, kWhole>(block); });
      block.first_queries = false;
      queries -= n;
      block.p += n * kBlock;
      block.o += int64_t{n} * dim;
    }
  }

  // The weights of kQueries queries for one group: w ≈ step · (256 · high + low), or step · term.
  template <int kQueries, bool kWhole>
  struct Weights {
    static constexpr int kPairs = kWhole ? 1 : kBlock / 2;  // of tiles; the last may lack one
    alignas(64) float steps[16];                            // of query i at i < kQueries
    // The terms of four rows of a pair of tiles are (2, kTerms, 4 rows), and sixteen bytes.
    alignas(64) uint8_t terms[kPairs][kQueries][4][16];

    const uint8_t* at(int tile, int query, int quad, int term) const {
      return &terms[tile / 2][query][quad][(tile % 2 * kTerms + term) * 4];
    }
  };

  template <int kQueries, bool kWhole>
  HWY_INLINE static void add_block(const Block& block) {
    for (int t = 0; t < block.count; ++t) {
      prefetch_lines(block.ahead(t), Side::scales_bytes(block.dim));
    }
    // Quantizing is one long chain of operations, so the next group's stands ahead of the sums of
    // this one, to run beside them. Neither is inlined here: gcc 12 would keep addresses in vector
    // registers (see anew).
    Weights<kQueries, kWhole> weights[2];
    quantize(block, 0, weights[0]);
    for (int first = 0, group = 0; first < block.dim; first += kGroup, ++group) {
      if (first + kGroup < block.dim) quantize(block, group + 1, weights[(group + 1) % 2]);
      const auto& own = weights[group % 2];
      const int end = std::min(first + kGroup, block.dim);
      int d = first;
      for (; d + kUnitsAtOnce * kUnit <= end; d += kUnitsAtOnce * kUnit) add_units(block, own, d);
      for (; d < end; d += kUnit) add_unit(block, own, d, std::min(kUnit, end - d));
    }
  }

  // Of a run's first slot on, in its tile.
  HWY_INLINE static __mmask16 rows_of(const TileRun& run) {
    return static_cast<__mmask16>(first_lanes(run.rows) << run.first_slot % kTileRows);
  }

  // (kQueries, tiles) probabilities · scales of a group → their terms.
  template <int kQueries, bool kWhole>
  HWY_NOINLINE static void quantize(const Block& block, int group, Weights<kQueries, kWhole>& to) {
    const int count = kWhole ? 2 : block.count;
    const TileRun* runs = block.runs;
    __m512 weights[2 * Weights<kQueries, kWhole>::kPairs][kQueries];
    // As bits, whose order is that of the numbers, so that a NaN is the largest and comes through.
    __m512i largest[kQueries];
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      largest[i] = _mm512_set1_epi32(std::bit_cast<int32_t>(kLeastMagnitude));
      if (count % 2 != 0) weights[count][i] = _mm512_setzero_ps();
    }
    KVMARK_UNROLL(2)
    for (int t = 0; t < count; ++t) {
      const __mmask16 rows = kWhole ? 0xffff : rows_of(runs[t]);
      // What lies in rows outside the run may be no number.
      const __m512 stored = load_scales(runs[t].tiles + int64_t{group} * kTileRows * 2);
      const __m512 scales = kWhole ? stored : _mm512_maskz_mov_ps(rows, stored);
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries; ++i) {
        const float* from = block.p + i * kBlock + runs[t].at;
        const __m512 own = kWhole ? _mm512_loadu_ps(from) : _mm512_maskz_expandloadu_ps(rows, from);
        weights[t][i] = _mm512_mul_ps(own, scales);
        largest[i] = _mm512_max_epu32(largest[i], _mm512_castps_si512(weights[t][i]));
      }
    }
    const __m512 most = max_of_each<kQueries>(largest);
    const __m512 factors = _mm512_div_ps(_mm512_set1_ps(weight_max(kTerms)), most);
    _mm512_store_ps(
        to.steps,
        _mm512_mul_ps(most, _mm512_set1_ps(1 / (weight_max(kTerms) * Operands::kValueUnit))));
    KVMARK_UNROLL(16)
    for (int i = 0; i < kQueries; ++i) {
      const __m512 factor = element(factors, i);
      for (int t = 0; t < count; t += 2) {
        store_terms(whole_number(weights[t][i], factor), whole_number(weights[t + 1][i], factor),
                    &to.terms[t / 2][i][0][0]);
      }
    }
  }

  // The largest lane of x[i] in lane i of each quarter.
  template <int kQueries>
  HWY_INLINE static __m512 max_of_each(const __m512i* x) {
    static_assert(kQueries <= 4);
    const auto pairs = [](__m512i a, __m512i b) KVMARK_VNNI_ATTR {
      return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    };
    const __m512i a = pairs(x[0], x[kQueries > 1 ? 1 : 0]);
    const __m512i b = kQueries > 2 ? pairs(x[kQueries > 2 ? 2 : 0], x[kQueries > 3 ? 3 : 0]) : a;
    __m512i most = _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    most = _mm512_max_epu32(most, _mm512_shuffle_i32x4(most, most, _MM_PERM_BADC));
    most = _mm512_max_epu32(most, _mm512_shuffle_i32x4(most, most, _MM_PERM_CDAB));
    return _mm512_castsi512_ps(most);
  }
  // Lane i of each quarter of x, throughout the quarter.
  HWY_INLINE static __m512 element(__m512 x, int i) {
    if (i == 0) return _mm512_permute_ps(x, 0x00);
    if (i == 1) return _mm512_permute_ps(x, 0x55);
    if (i == 2) return _mm512_permute_ps(x, 0xaa);
    return _mm512_permute_ps(x, 0xff);
  }

  // x · factor < 2^16, rounded, in the lower half of each lane; the upper half is something else.
  HWY_INLINE static __m512i whole_number(__m512 x, __m512 factor) {
    return _mm512_castps_si512(_mm512_fmadd_ps(x, factor, _mm512_set1_ps(0x1p23f)));
  }

  // The numbers of a pair of tiles → their terms, the high ones first.
  HWY_INLINE static void store_terms(__m512i first, __m512i second, uint8_t* terms) {
    alignas(64) static constexpr auto kBytes = [] {
      std::array<uint8_t, 64> bytes{};
      for (int i = 0; i < 64; ++i) {
        const int word = i % 16 / 4, tile = word / kTerms % 2, low = kTerms - 1 - word % kTerms;
        bytes[i] = static_cast<uint8_t>(i % 4 * 4 + tile * 2 + low);
      }
      return bytes;
    }();
    const __m512i lower = _mm512_set1_epi32(0xffff);
    constexpr int kSelectOr = 0xea;  // (a & b) | c
    const __m512i both =
        _mm512_ternarylogic_epi32(first, lower, _mm512_slli_epi32(second, 16), kSelectOr);
    _mm512_store_si512(terms, _mm512_shuffle_epi8(both, _mm512_load_si512(kBytes.data())));
  }

  // o of 32 channels from d on.
  template <int kQueries, bool kWhole>
  HWY_NOINLINE static void add_units(const Block& block, const Weights<kQueries, kWhole>& weights,
                                     int d) {
    constexpr int kUnitBytes = 4 * 64;
    const int count = kWhole ? 2 : block.count;
    const int64_t first = Side::scales_bytes(block.dim) + int64_t{d / kUnit} * kUnitBytes;
    __m512i dots[kQueries][2][kTerms];
    zero<kQueries>(dots);
    KVMARK_UNROLL(2)
    for (int t = 0; t < count; ++t) {
      const std::byte* codes = anew(block.runs[t].tiles + first);
      const std::byte* ahead = anew(block.ahead(t) + first);
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
      float* to = block.o + int64_t{i} * block.dim + d;
      KVMARK_UNROLL(2)
      for (int v = 0; v < 2; ++v) {
        const __m512 sum = _mm512_cvtepi32_ps(total<kTerms>(dots[i][v]));
        const __m512 before = _mm512_loadu_ps(to + v * 16);
        _mm512_storeu_ps(to + v * 16,
                         _mm512_fmadd_ps(sum, _mm512_set1_ps(weights.steps[i]), before));
      }
    }
  }

  // o of a unit's n channels from d on.
  template <int kQueries, bool kWhole>
  HWY_NOINLINE static void add_unit(const Block& block, const Weights<kQueries, kWhole>& weights,
                                    int d, int n) {
    const int width = (n + kParts - 1) / kParts;  // words of four rows
    const auto words = first_lanes(width);
    __m512i dots[kQueries][2][kTerms];
    zero<kQueries>(dots);
    for (int t = 0; t < block.count; ++t) {
      const int64_t first = Side::scales_bytes(block.dim) + int64_t{d / kParts} * kTileRows;
      for (int quad = 0; quad < 4; ++quad) {
        const int64_t at = first + quad * 4 * width;
        __m512i values[2] = {};
        Operands::values(_mm512_maskz_loadu_epi32(words, block.runs[t].tiles + at), values);
        add_quad<kQueries, kWhole>(weights, t, quad, values, dots);
      }
    }
    for (int i = 0; i < kQueries; ++i) {
      for (int part = 0; part < kParts; ++part) {
        float* to = block.o + int64_t{i} * block.dim + d + part * width;
        const auto here = first_lanes(std::min(width, n - part * width));
        const __m512 sum = _mm512_cvtepi32_ps(total<kTerms>(dots[i][part]));
        const __m512 before = _mm512_maskz_loadu_ps(here, to);
        _mm512_mask_storeu_ps(to, here,
                              _mm512_fmadd_ps(sum, _mm512_set1_ps(weights.steps[i]), before));
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
        const __m512i weight = broadcast4(weights.at(t, i, quad, term));
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
