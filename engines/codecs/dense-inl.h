// Dense f32 kernels over a few rows in L1, compiled for each SIMD target.
//
// The order of operations that lead to one result is fixed: it depends on neither the number of
// queries or rows in the call nor the place of a row in it. Register tiles only change which
// results are worked on together.
#include <hwy/highway.h>

#include <cstdint>

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

// 512-bit targets have 32 vector registers, the others may have 16: the side of a tile of sums.
inline constexpr int kTileRows = kLanes == 16 ? 4 : 2;

// One level of the tree that sums lanes: neighbours are added; the sums of `a` become the lower
// half of the result, those of `b` the upper.
HWY_INLINE FloatVec add_neighbours(FloatVec a, FloatVec b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(a, b);  // one lane has no neighbour: never called
#else
  const FloatTag d;
  return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
#endif
}

// Sums the lanes of each of kCount vectors, a power of two ≤ kLanes; sum i stands in lane i.
// kWidth: lanes still to be summed of each vector.
template <int kCount, int kWidth>
HWY_INLINE FloatVec sum_lanes(const FloatVec* v) {
  if constexpr (kWidth == 1) {
    return v[0];
  } else if constexpr (kCount == 1) {
    const FloatVec next[1] = {add_neighbours(v[0], v[0])};
    return sum_lanes<1, kWidth / 2>(next);
  } else {
    FloatVec next[kCount / 2];
    for (int i = 0; i < kCount / 2; ++i) next[i] = add_neighbours(v[2 * i], v[2 * i + 1]);
    return sum_lanes<kCount / 2, kWidth / 2>(next);
  }
}

// s(query, row) for kQueries × kRows pairs. A dot product is one fused chain per lane in ascending
// order, then the tree over the lanes.
template <int kQueries, int kRows>
HWY_INLINE void dot_tile(const float* q, int64_t q_stride, const float* rows, int64_t row_stride,
                         int dim, float* s, int64_t s_stride) {
  constexpr int kPairs = kQueries * kRows;
  const FloatTag tag;
  FloatVec sums[kPairs];
  for (int i = 0; i < kPairs; ++i) sums[i] = hn::Zero(tag);
  int d = 0;
  for (; d + kLanes <= dim; d += kLanes) {
    FloatVec row[kRows];
    for (int r = 0; r < kRows; ++r) row[r] = hn::LoadU(tag, rows + r * row_stride + d);
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec query = hn::LoadU(tag, q + i * q_stride + d);
      for (int r = 0; r < kRows; ++r) {
        sums[i * kRows + r] = hn::MulAdd(query, row[r], sums[i * kRows + r]);
      }
    }
  }
  if (d < dim) {
    FloatVec row[kRows];
    for (int r = 0; r < kRows; ++r) row[r] = load_first(rows + r * row_stride + d, dim - d);
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec query = load_first(q + i * q_stride + d, dim - d);
      for (int r = 0; r < kRows; ++r) {
        sums[i * kRows + r] = hn::MulAdd(query, row[r], sums[i * kRows + r]);
      }
    }
  }
  constexpr int kTogether = kPairs < kLanes ? kPairs : kLanes;
  constexpr int kStored = kPairs < kLanes ? kLanes : kPairs;
  HWY_ALIGN float dots[kStored];
  for (int i = 0; i < kPairs; i += kTogether) {
    hn::Store(sum_lanes<kTogether, kLanes>(sums + i), tag, dots + i);
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int r = 0; r < kRows; ++r) s[i * s_stride + r] = dots[i * kRows + r];
  }
}

template <int kQueries>
HWY_INLINE void dot_queries(const float* q, int64_t q_stride, const float* rows, int64_t row_stride,
                            int count, int dim, float* s, int64_t s_stride) {
  int r = 0;
  for (; r + kTileRows <= count; r += kTileRows) {
    dot_tile<kQueries, kTileRows>(q, q_stride, rows + r * row_stride, row_stride, dim, s + r,
                                  s_stride);
  }
  for (; r < count; ++r) {
    dot_tile<kQueries, 1>(q, q_stride, rows + r * row_stride, row_stride, dim, s + r, s_stride);
  }
}

// s(query, row) = Σ_d q(query, d) · rows(row, d) for `count` rows. The rows stay in L1 while the
// queries pass by.
inline HWY_NOINLINE void dot_rows(const float* q, int64_t q_stride, int queries, const float* rows,
                                  int64_t row_stride, int count, int dim, float* s,
                                  int64_t s_stride) {
  int i = 0;
  for (; i + 4 <= queries; i += 4) {
    dot_queries<4>(q + i * q_stride, q_stride, rows, row_stride, count, dim, s + i * s_stride,
                   s_stride);
  }
  for (; i + 2 <= queries; i += 2) {
    dot_queries<2>(q + i * q_stride, q_stride, rows, row_stride, count, dim, s + i * s_stride,
                   s_stride);
  }
  if (i < queries) {
    dot_queries<1>(q + i * q_stride, q_stride, rows, row_stride, count, dim, s + i * s_stride,
                   s_stride);
  }
}

// o(query, ·) += Σ_row p(query, row) · rows(row, ·) for kVectors vectors of channels: one fused
// chain per channel, rows in ascending order.
template <int kQueries, int kVectors>
HWY_INLINE void add_tile(const float* p, int64_t p_stride, const float* rows, int64_t row_stride,
                         int count, float* o, int64_t o_stride) {
  const FloatTag tag;
  FloatVec sums[kQueries * kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int c = 0; c < kVectors; ++c) {
      sums[i * kVectors + c] = hn::LoadU(tag, o + i * o_stride + c * kLanes);
    }
  }
  for (int r = 0; r < count; ++r) {
    FloatVec row[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      row[c] = hn::LoadU(tag, rows + r * row_stride + c * kLanes);
    }
    for (int i = 0; i < kQueries; ++i) {
      const FloatVec weight = hn::Set(tag, p[i * p_stride + r]);
      for (int c = 0; c < kVectors; ++c) {
        sums[i * kVectors + c] = hn::MulAdd(weight, row[c], sums[i * kVectors + c]);
      }
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int c = 0; c < kVectors; ++c) {
      hn::StoreU(sums[i * kVectors + c], tag, o + i * o_stride + c * kLanes);
    }
  }
}

// The last channels, fewer than a vector.
template <int kQueries>
HWY_INLINE void add_tail(const float* p, int64_t p_stride, const float* rows, int64_t row_stride,
                         int count, int channels, float* o, int64_t o_stride) {
  const FloatTag tag;
  FloatVec sums[kQueries];
  for (int i = 0; i < kQueries; ++i) sums[i] = load_first(o + i * o_stride, channels);
  for (int r = 0; r < count; ++r) {
    const FloatVec row = load_first(rows + r * row_stride, channels);
    for (int i = 0; i < kQueries; ++i) {
      sums[i] = hn::MulAdd(hn::Set(tag, p[i * p_stride + r]), row, sums[i]);
    }
  }
  for (int i = 0; i < kQueries; ++i) store_first(sums[i], o + i * o_stride, channels);
}

template <int kQueries>
HWY_INLINE void add_queries(const float* p, int64_t p_stride, const float* rows, int64_t row_stride,
                            int count, int dim, float* o, int64_t o_stride) {
  int d = 0;
  for (; d + kTileRows * kLanes <= dim; d += kTileRows * kLanes) {
    add_tile<kQueries, kTileRows>(p, p_stride, rows + d, row_stride, count, o + d, o_stride);
  }
  for (; d + kLanes <= dim; d += kLanes) {
    add_tile<kQueries, 1>(p, p_stride, rows + d, row_stride, count, o + d, o_stride);
  }
  if (d < dim) {
    add_tail<kQueries>(p, p_stride, rows + d, row_stride, count, dim - d, o + d, o_stride);
  }
}

// o(query, d) += Σ_row p(query, row) · rows(row, d) for `count` rows.
inline HWY_NOINLINE void add_rows(const float* p, int64_t p_stride, int queries, const float* rows,
                                  int64_t row_stride, int count, int dim, float* o,
                                  int64_t o_stride) {
  int i = 0;
  for (; i + 4 <= queries; i += 4) {
    add_queries<4>(p + i * p_stride, p_stride, rows, row_stride, count, dim, o + i * o_stride,
                   o_stride);
  }
  for (; i + 2 <= queries; i += 2) {
    add_queries<2>(p + i * p_stride, p_stride, rows, row_stride, count, dim, o + i * o_stride,
                   o_stride);
  }
  if (i < queries) {
    add_queries<1>(p + i * p_stride, p_stride, rows, row_stride, count, dim, o + i * o_stride,
                   o_stride);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
