// Kernels over tiles of plain numbers (dense.h), compiled for each SIMD target.
//
// The order of operations that lead to one result is fixed: it depends on neither the number of
// queries in the call nor the place of a row in it. Register tiles only change which results are
// worked on together.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

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
// dense keys, which have two sums a vector. 512-bit targets have 32 vector registers, the others
// may have 16.
inline constexpr int kMaxQueries = 4;
inline constexpr int kMaxScoreQueries = kLanes == 16 ? 8 : kLanes == 8 ? 2 : 1;
inline constexpr int kValueVectors = kLanes == 16 ? 4 : 2;

// The next register tile's share of `queries`: tiles of nearly equal size, so that none of three
// and more is left with a single query.
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

// Where to prefetch while a run is worked on: what is at hand costs less than to ask whether to.
// Once is enough, with the first queries.
HWY_INLINE const std::byte* ahead_of(const TileRun& run, bool first_queries) {
  return first_queries && run.ahead ? run.ahead : run.tiles;
}
HWY_INLINE void prefetch_lines(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) hwy::Prefetch(from + i);
}

// q(d) and q(d + 1) in all lanes. A processor loads two vectors a cycle: taking every second
// query's pair by one load and two shuffles leaves the loads in time for as many multiply-adds.
template <bool kOneLoad>
HWY_INLINE void broadcast_pair(const float* q, FloatVec& first, FloatVec& second) {
  const FloatTag tag;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kOneLoad) {
    const hn::Repartition<double, FloatTag> pairs;
    double pair;
    std::memcpy(&pair, q, sizeof(pair));
    const FloatVec both = in_register(hn::BitCast(tag, hn::Set(pairs, pair)));
    first = hn::DupEven(both);
    second = hn::DupOdd(both);
    return;
  }
#endif
  first = hn::Set(tag, q[0]);
  second = hn::Set(tag, q[1]);
}

// Scores of kQueries × kTileRows pairs with a tile of keys, (dim, kTileRows) words. A dot product
// is two fused chains, over the even and the odd channels. Tiles are read one by one, since the
// prefetchers of processors follow one stream of rising addresses better than two that take turns.
// `ahead` may be null.
template <typename T, int kQueries>
HWY_INLINE void score_tile(const float* q, int dim, const T* tile, const std::byte* ahead,
                           float* s) {
  const FloatTag tag;
  constexpr int kSums = kQueries * kTileVectors;
  constexpr int64_t kChannelBytes = kTileRows * sizeof(T);
  FloatVec even[kSums], odd[kSums];
  KVMARK_UNROLL(16)
  for (int i = 0; i < kSums; ++i) even[i] = odd[i] = hn::Zero(tag);
  int d = 0;
  for (; d + 2 <= dim; d += 2) {
    if (ahead) prefetch_lines(ahead + d * kChannelBytes, 2 * kChannelBytes);
    FloatVec keys[2 * kTileVectors];
    KVMARK_UNROLL(8)
    for (int v = 0; v < 2 * kTileVectors; ++v) {
      keys[v] = in_register(load(tile + int64_t{d} * kTileRows + v * kLanes));
    }
    const auto add_query = [&]<int i>() HWY_ATTR {
      FloatVec first, second;
      broadcast_pair<i % 2 == 1>(q + int64_t{i} * dim + d, first, second);
      KVMARK_UNROLL(8)
      for (int v = 0; v < kTileVectors; ++v) {
        const int sum = i * kTileVectors + v;
        even[sum] = hn::MulAdd(first, keys[v], even[sum]);
        odd[sum] = hn::MulAdd(second, keys[kTileVectors + v], odd[sum]);
      }
    };
    [&]<int... i>(std::integer_sequence<int, i...>) HWY_ATTR {
      (add_query.template operator()<i>(), ...);
    }
    (std::make_integer_sequence<int, kQueries>());
  }
  if (d < dim) {
    for (int v = 0; v < kTileVectors; ++v) {
      const FloatVec keys = load(tile + int64_t{d} * kTileRows + v * kLanes);
      KVMARK_UNROLL(16)
      for (int i = 0; i < kQueries; ++i) {
        const int sum = i * kTileVectors + v;
        even[sum] = hn::MulAdd(hn::Set(tag, q[int64_t{i} * dim + d]), keys, even[sum]);
      }
    }
  }
  KVMARK_UNROLL(16)
  for (int i = 0; i < kSums; ++i) {
    hn::StoreU(hn::Add(even[i], odd[i]), tag,
               s + i / kTileVectors * kBlock + i % kTileVectors * kLanes);
  }
}

// The same for some rows of the tile: the others belong to others or hold nothing yet.
template <typename T>
HWY_NOINLINE void score_rows(const float* q, int queries, int dim, const T* tile,
                             const TileRun& run, float* s) {
  for (int i = 0; i < queries; ++i) {
    float all[kBlock];
    score_tile<T, 1>(q + int64_t{i} * dim, dim, tile, nullptr, all);
    const int from = run.first_slot % kTileRows;
    for (int r = 0; r < run.rows; ++r) s[i * kBlock + run.at + r] = all[from + r];
  }
}

// Codec::scores over tiles that stand at tile_of(run).
template <typename T, typename TileOf>
HWY_INLINE void score_runs(const float* q, int queries, int dim, std::span<const TileRun> runs,
                           float* s, const TileOf& tile_of) {
  bool first = true;  // prefetching once is enough
  while (queries > 0) {
    const int n = next_queries<kMaxScoreQueries>(queries);
    with_queries<kMaxScoreQueries>(n, [&]<int kQueries>() HWY_ATTR {
      for (const TileRun& run : runs) {
        if (run.rows == kTileRows) {
          score_tile<T, kQueries>(q, dim, tile_of(run), first ? run.ahead : nullptr, s + run.at);
        } else {
          score_rows<T>(q, kQueries, dim, tile_of(run), run, s);
        }
      }
    });
    first = false;
    queries -= n;
    q += int64_t{n} * dim;
    s += n * kBlock;
  }
}

// o(query, ·) += Σ_row p(query, row) · value(row, ·) for kVectors vectors of channels from d on:
// one fused chain per channel, rows in ascending order. rows_of(run): the values of its rows,
// (rows, dim). Where kPrefetch, what is ahead of the runs is prefetched.
template <typename T, int kQueries, int kVectors, bool kPrefetch, typename RowsOf>
HWY_INLINE void add_channels(const float* p, int dim, std::span<const TileRun> runs,
                             const RowsOf& rows_of, int d, float* o) {
  const FloatTag tag;
  FloatVec sums[kQueries * kVectors];
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) {
    KVMARK_UNROLL(8)
    for (int c = 0; c < kVectors; ++c) {
      sums[i * kVectors + c] = hn::LoadU(tag, o + int64_t{i} * dim + d + c * kLanes);
    }
  }
  for (const TileRun& run : runs) {
    const float* weights = p + run.at;
    const T* values = rows_of(run) + d;
    // Where nothing is ahead, once more what is read.
    const std::byte* ahead = reinterpret_cast<const std::byte*>(values);
    if (run.ahead) ahead = run.ahead + d * static_cast<int64_t>(sizeof(T));
    for (int r = 0; r < run.rows; ++r) {
      if constexpr (kPrefetch) {
        prefetch_lines(ahead + r * dim * static_cast<int64_t>(sizeof(T)),
                       kVectors * kLanes * sizeof(T));
      }
      FloatVec row[kVectors];
      KVMARK_UNROLL(8)
      for (int c = 0; c < kVectors; ++c) row[c] = in_register(load(values + c * kLanes));
      values += dim;
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
template <typename T, int kQueries, typename RowsOf>
HWY_NOINLINE void add_tail(const float* p, int dim, std::span<const TileRun> runs,
                           const RowsOf& rows_of, int d, float* o) {
  const FloatTag tag;
  const int channels = dim - d;
  FloatVec sums[kQueries];
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) sums[i] = load_first(o + int64_t{i} * dim + d, channels);
  for (const TileRun& run : runs) {
    const T* values = rows_of(run) + d;
    for (int r = 0; r < run.rows; ++r, values += dim) {
      const FloatVec row = load_first(values, channels);
      KVMARK_UNROLL(8)
      for (int i = 0; i < kQueries; ++i) {
        sums[i] = hn::MulAdd(hn::Set(tag, p[i * kBlock + run.at + r]), row, sums[i]);
      }
    }
  }
  KVMARK_UNROLL(8)
  for (int i = 0; i < kQueries; ++i) store_first(sums[i], o + int64_t{i} * dim + d, channels);
}

template <typename T, int kQueries, bool kPrefetch, typename RowsOf>
HWY_NOINLINE void add_rows_of(const float* p, int dim, std::span<const TileRun> runs,
                              const RowsOf& rows_of, float* o) {
  int d = 0;
  for (; d + kValueVectors * kLanes <= dim; d += kValueVectors * kLanes) {
    add_channels<T, kQueries, kValueVectors, kPrefetch>(p, dim, runs, rows_of, d, o);
  }
  for (; d + kLanes <= dim; d += kLanes) {
    add_channels<T, kQueries, 1, kPrefetch>(p, dim, runs, rows_of, d, o);
  }
  if (d < dim) add_tail<T, kQueries>(p, dim, runs, rows_of, d, o);
}

// Codec::accumulate over rows that stand at rows_of(run).
template <typename T, typename RowsOf>
HWY_INLINE void add_rows(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         const RowsOf& rows_of, float* o) {
  bool first = !runs.empty() && runs.front().ahead;  // prefetching once is enough
  while (queries > 0) {
    const int n = next_queries(queries);
    with_queries(n, [&]<int kQueries>() HWY_ATTR {
      first ? add_rows_of<T, kQueries, true>(p, dim, runs, rows_of, o)
            : add_rows_of<T, kQueries, false>(p, dim, runs, rows_of, o);
    });
    first = false;
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
    add_rows<T>(
        p, queries, dim, runs,
        [dim](const TileRun& run) {
          return reinterpret_cast<const T*>(run.tiles) + int64_t{run.first_slot} * dim;
        },
        o);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
