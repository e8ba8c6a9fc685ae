// Kernels over tiles of plain numbers (dense.h), compiled for each SIMD target.
//
// The order of operations that lead to one result is fixed: it depends on neither the number of
// queries in the call nor the place of a row in it. Register tiles only change which results are
// worked on together.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "engines/codecs/codec.h"
#include "engines/codecs/lanes-inl.h"

// Highway's include guard for code that is compiled several times.
#if defined(KVMARK_CODECS_DENSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_DENSE_INL_H_
#undef KVMARK_CODECS_DENSE_INL_H_
#else
#define KVMARK_CODECS_DENSE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

inline constexpr int kTileVectors = kTileRows / kLanes;

// Register tiles: sums of up to kMaxQueries queries at once, of kMaxScoreQueries for the scores of
// dense keys. 512-bit targets have 32 vector registers, the others may have 16.
inline constexpr int kMaxQueries = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 1;
inline constexpr int kMaxScoreQueries = kLanes == 16 ? 7 : kMaxQueries;
inline constexpr int kMaxKeyTiles = kLanes == 16 ? 2 : 1;
inline constexpr int kValueVectors = kLanes == 16 ? 4 : 2;

// The next register tile's share of `queries`: tiles of nearly equal size, so that none is left
// with a single query.
template <int kMost = kMaxQueries>
HWY_INLINE int next_queries(int queries) {
  if (queries >= 2 * kMost) return kMost;
  return queries > kMost ? (queries + 1) / 2 : queries;
}

// Calls body.template operator()<n>() for n = queries ≤ kMost.
template <int kMost = kMaxQueries, typename Body>
HWY_INLINE void with_queries(int queries, const Body& body) {
  if constexpr (kMost > 1) {
    if (queries < kMost) return with_queries<kMost - 1>(queries, body);
  }
  body.template operator()<kMost>();
}

HWY_INLINE void prefetch_lines(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) hwy::Prefetch(from + i);
}

// A tile of keys, (dim, kTileRows) words; `ahead` may be null.
template <typename T>
struct KeyTile {
  const T* words;
  const std::byte* ahead;
};

// Scores of kQueries × (kTiles · kTileRows) pairs, those of a tile side by side at s + kTileRows ·
// tile. A dot product is two fused chains, over the even and the odd channels.
template <typename T, int kQueries, int kTiles>
HWY_INLINE void score_tiles(const float* q, int dim, const KeyTile<T>* tiles, float* s) {
  constexpr int kVectors = kTiles * kTileVectors;
  const FloatTag tag;
  FloatVec even[kQueries * kVectors], odd[kQueries * kVectors];
  KVMARK_UNROLL(24)
  for (int i = 0; i < kQueries * kVectors; ++i) even[i] = odd[i] = hn::Zero(tag);
  const auto add_channel = [&](int d, FloatVec* sums) HWY_ATTR {
    FloatVec keys[kVectors];
    KVMARK_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      keys[v] = in_register(
          load(tiles[v / kTileVectors].words + int64_t{d} * kTileRows + v % kTileVectors * kLanes));
    }
    KVMARK_UNROLL(8)
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec query = hn::Set(tag, q[int64_t{i} * dim + d]);
      KVMARK_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        sums[i * kVectors + v] = hn::MulAdd(query, keys[v], sums[i * kVectors + v]);
      }
    }
  };
  constexpr int kStep = 8;  // channels between prefetches
  constexpr int64_t kStepBytes = kStep * kTileRows * sizeof(T);
  const int64_t tile_bytes = dim * int64_t{kTileRows * sizeof(T)};
  int d = 0;
  for (; d + kStep <= dim; d += kStep) {
    if (tiles[0].ahead) {
      // One tile after the other: prefetchers of the processor follow a stream of rising addresses,
      // not two that take turns.
      const int64_t at = d / kStep * (kTiles * kStepBytes);
      const int tile = kTiles == 2 && at >= tile_bytes ? 1 : 0;
      prefetch_lines(tiles[tile].ahead + at - tile * tile_bytes, kTiles * kStepBytes);
    }
    KVMARK_UNROLL(4)
    for (int pair = 0; pair < kStep; pair += 2) {
      add_channel(d + pair, even);
      add_channel(d + pair + 1, odd);
    }
  }
  for (; d + 2 <= dim; d += 2) {
    add_channel(d, even);
    add_channel(d + 1, odd);
  }
  if (d < dim) add_channel(d, even);
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) {
    KVMARK_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Add(even[i * kVectors + v], odd[i * kVectors + v]), tag,
                 s + i * kBlock + v * kLanes);
    }
  }
}

template <typename T, int kTiles>
HWY_INLINE void score_queries(const float* q, int queries, int dim, KeyTile<T>* tiles, float* s) {
  while (queries > 0) {
    const int n = next_queries<kMaxScoreQueries>(queries);
    with_queries<kMaxScoreQueries>(
        n, [&]<int kQueries>() HWY_ATTR { score_tiles<T, kQueries, kTiles>(q, dim, tiles, s); });
    for (int t = 0; t < kTiles; ++t) tiles[t].ahead = nullptr;  // once is enough
    queries -= n;
    q += int64_t{n} * dim;
    s += n * kBlock;
  }
}

// Codec::scores over tiles that stand at tile_of(run).
template <typename T, typename TileOf>
HWY_INLINE void score_runs(const float* q, int queries, int dim, std::span<const TileRun> runs,
                           float* s, const TileOf& tile_of) {
  const auto whole = [](const TileRun& run) { return run.rows == kTileRows; };
  for (size_t i = 0; i < runs.size(); ++i) {
    const TileRun& run = runs[i];
    if constexpr (kMaxKeyTiles == 2) {
      if (i + 1 < runs.size() && whole(run) && whole(runs[i + 1]) &&
          runs[i + 1].at == run.at + kTileRows) {
        KeyTile<T> tiles[2] = {{tile_of(run), run.ahead},
                               {tile_of(runs[i + 1]), runs[i + 1].ahead}};
        score_queries<T, 2>(q, queries, dim, tiles, s + run.at);
        ++i;
        continue;
      }
    }
    KeyTile<T> tile[1] = {{tile_of(run), run.ahead}};
    if (whole(run)) {
      score_queries<T, 1>(q, queries, dim, tile, s + run.at);
      continue;
    }
    // The other rows of the tile belong to others or hold nothing yet: their scores are dropped.
    for (int j = 0; j < queries; ++j) {
      float all[kBlock];
      score_queries<T, 1>(q + int64_t{j} * dim, 1, dim, tile, all);
      const int from = run.first_slot % kTileRows;
      for (int r = 0; r < run.rows; ++r) s[j * kBlock + run.at + r] = all[from + r];
    }
  }
}

// Rows of values, `stride` words between them; `ahead` may be null.
template <typename T>
struct ValueRows {
  const T* words;
  int rows;
  int at;  // of the first row's probability
  const std::byte* ahead;
};

// o(query, ·) += Σ_row p(query, row) · rows(row, ·) for kVectors vectors of channels from d on: one
// fused chain per channel, rows in ascending order.
template <typename T, int kQueries, int kVectors>
HWY_INLINE void add_channels(const float* p, int dim, std::span<const ValueRows<T>> runs, int d,
                             float* o) {
  const FloatTag tag;
  FloatVec sums[kQueries * kVectors];
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) {
    KVMARK_UNROLL(8)
    for (int c = 0; c < kVectors; ++c) {
      sums[i * kVectors + c] = hn::LoadU(tag, o + int64_t{i} * dim + d + c * kLanes);
    }
  }
  for (const ValueRows<T>& run : runs) {
    const float* weights = p + run.at;
    for (int64_t r = 0; r < run.rows; ++r) {
      const int64_t at = r * dim + d;
      constexpr int64_t kBytes = kVectors * kLanes * sizeof(T);
      if (run.ahead) prefetch_lines(run.ahead + at * static_cast<int64_t>(sizeof(T)), kBytes);
      FloatVec row[kVectors];
      KVMARK_UNROLL(8)
      for (int c = 0; c < kVectors; ++c) row[c] = in_register(load(run.words + at + c * kLanes));
      KVMARK_UNROLL(8)
      for (int i = 0; i < kQueries; ++i) {
        const FloatVec weight = hn::Set(tag, weights[i * kBlock + r]);
        KVMARK_UNROLL(8)
        for (int c = 0; c < kVectors; ++c) {
          sums[i * kVectors + c] = hn::MulAdd(weight, row[c], sums[i * kVectors + c]);
        }
      }
    }
  }
  o = anew(o);
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) {
    KVMARK_UNROLL(8)
    for (int c = 0; c < kVectors; ++c) {
      hn::StoreU(sums[i * kVectors + c], tag, o + int64_t{i} * dim + d + c * kLanes);
    }
  }
}

// The last channels from d on, fewer than a vector.
template <typename T, int kQueries>
HWY_INLINE void add_tail(const float* p, int dim, std::span<const ValueRows<T>> runs, int d,
                         float* o) {
  const FloatTag tag;
  const int channels = dim - d;
  FloatVec sums[kQueries];
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) sums[i] = load_first(o + int64_t{i} * dim + d, channels);
  for (const ValueRows<T>& run : runs) {
    for (int r = 0; r < run.rows; ++r) {
      const FloatVec row = load_first(run.words + int64_t{r} * dim + d, channels);
      KVMARK_UNROLL(8)
      for (int i = 0; i < kQueries; ++i) {
        sums[i] = hn::MulAdd(hn::Set(tag, p[i * kBlock + run.at + r]), row, sums[i]);
      }
    }
  }
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) store_first(sums[i], o + int64_t{i} * dim + d, channels);
}

// Codec::accumulate over rows that stand where `runs` says.
template <typename T>
HWY_INLINE void add_rows(const float* p, int queries, int dim, std::span<ValueRows<T>> runs,
                         float* o) {
  while (queries > 0) {
    const int n = next_queries(queries);
    with_queries(n, [&]<int kQueries>() HWY_ATTR {
      const std::span<const ValueRows<T>> rows = runs;
      int d = 0;
      for (; d + kValueVectors * kLanes <= dim; d += kValueVectors * kLanes) {
        add_channels<T, kQueries, kValueVectors>(p, dim, rows, d, o);
      }
      for (; d + kLanes <= dim; d += kLanes) add_channels<T, kQueries, 1>(p, dim, rows, d, o);
      if (d < dim) add_tail<T, kQueries>(p, dim, rows, d, o);
    });
    for (ValueRows<T>& run : runs) run.ahead = nullptr;  // once is enough
    queries -= n;
    p += n * kBlock;
    o += int64_t{n} * dim;
  }
}

// Queries as they come, and f32 sums.
struct PlainQueries {
  static constexpr double kTolerance = 1e-5;
  static int64_t prepared_floats(int dim) { return dim; }
  static void prepare(const float* q, int dim, float* prepared) { std::copy_n(q, dim, prepared); }
};

// The kernels of a DenseFormat, whose words are T to Highway.
template <typename T>
struct DenseKernels : PlainQueries {
  static std::string_view kernel() { return hwy::TargetName(HWY_TARGET); }

  static void scores(const float* q, int queries, int dim, std::span<const TileRun> runs, float* s,
                     float* /*scratch*/) {
    score_runs<T>(q, queries, dim, runs, s,
                  [](const TileRun& run) { return reinterpret_cast<const T*>(run.tiles); });
  }
  static void accumulate(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         float* o, float* /*scratch*/) {
    ValueRows<T> rows[kBlock];
    for (size_t i = 0; i < runs.size(); ++i) {
      const TileRun& run = runs[i];
      rows[i] = {reinterpret_cast<const T*>(run.tiles) + int64_t{run.first_slot} * dim, run.rows,
                 run.at, run.ahead};
    }
    add_rows<T>(p, queries, dim, {rows, runs.size()}, o);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
