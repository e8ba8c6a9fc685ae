#include "engines/cpu/cpu_backend_kernels.h"

#include <algorithm>
#include <cmath>

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/cpu/cpu_backend_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVec;

float sum(FloatTag d, V v) { return hn::GetLane(hn::SumOfLanes(d, v)); }

// Asks for the weights that a stream reaches 4 KiB later: far enough for memory, near enough for
// the first-level cache. Of 4-byte weights the hardware brings as much by itself.
template <typename T>
HWY_INLINE void prefetch(const T* w, size_t n) {
  constexpr size_t kAheadBytes = 4096, kLineBytes = 64;
  if constexpr (sizeof(T) < sizeof(float)) {
    const auto ahead = reinterpret_cast<uintptr_t>(w) + kAheadBytes;
    for (size_t byte = 0; byte < n * sizeof(T); byte += kLineBytes) {
      hwy::Prefetch(reinterpret_cast<const void*>(ahead + byte));
    }
  }
}

// Rows [row, row + kRows), outputs out and, if kOuts is 2, out + apart: a loaded number serves for
// all. A (row, output) pair is added up in two accumulators, of every other vector, whatever kRows
// and kOuts are, so that all instances agree bit for bit; four or more accumulators hide the
// latency of the multiply-adds.
template <int kRows, int kOuts, typename T>
void dot(const GemvTask& task, int row, int out, int apart) {
  const FloatTag d;
  const int64_t cols = task.w->cols;
  const float* x = task.x + row * cols;
  const T* w = static_cast<const T*>(task.w->data) + out * cols;
  V even[kRows][kOuts], odd[kRows][kOuts];
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) even[r][o] = odd[r][o] = hn::Zero(d);
  }
  // Adds the products at column i, where load_at brings the numbers.
  const auto add = [&](V(&sums)[kRows][kOuts], int64_t i, const auto& load_at) HWY_ATTR {
    V wi[kOuts];
    for (int o = 0; o < kOuts; ++o) wi[o] = load_at(w + o * apart * cols + i);
    for (int r = 0; r < kRows; ++r) {
      const V xi = load_at(x + r * cols + i);
      for (int o = 0; o < kOuts; ++o) sums[r][o] = hn::MulAdd(xi, wi[o], sums[r][o]);
    }
  };
  const auto whole = [](const auto* p) HWY_ATTR { return load(p); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= cols; i += 2 * kLanes) {
    for (int o = 0; o < kOuts; ++o) prefetch(w + o * apart * cols + i, 2 * kLanes);
    add(even, i, whole);
    add(odd, i + kLanes, whole);
  }
  if (i + kLanes <= cols) {
    add(even, i, whole);
    i += kLanes;
  }
  if (const int rest = static_cast<int>(cols - i)) {
    add(odd, i, [rest](const auto* p) HWY_ATTR { return load_first(p, rest); });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) {
      const int at = out + o * apart;
      const float bias = task.bias ? task.bias[at] : 0.0f;
      task.y[int64_t{row + r} * task.w->rows + at] = sum(d, hn::Add(even[r][o], odd[r][o])) + bias;
    }
  }
}

template <typename T>
void gemv_typed(const GemvTask& task) {
  const int end = task.first + task.outs;
  if (task.rows >= 4) {
    for (int out = task.first; out < end; ++out) {
      for (int row = 0; row < task.rows; row += 4) {
        // The last group may overlap the one before and writes the same numbers again.
        dot<4, 1, T>(task, std::min(row, task.rows - 4), out, 0);
      }
    }
    return;
  }
  // Two walks, each through a half from end to end: long streams in memory, which prefetchers
  // follow to the full bandwidth even where rows are short.
  const int half = task.outs / 2;
  for (int out = task.first; out < task.first + half; ++out) {
    for (int row = 0; row < task.rows; ++row) dot<1, 2, T>(task, row, out, half);
  }
  if (task.outs % 2 == 1) {
    for (int row = 0; row < task.rows; ++row) dot<1, 1, T>(task, row, end - 1, 0);
  }
}

void gemv(const GemvTask& task) {
  switch (task.w->type) {
    case WeightType::f32:
      return gemv_typed<float>(task);
    case WeightType::f16:
      return gemv_typed<hwy::float16_t>(task);
    case WeightType::bf16:
      return gemv_typed<hwy::bfloat16_t>(task);
  }
}

template <typename T>
void widen_typed(const T* from, int64_t n, float* out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load(from + i), d, out + i);
  if (i < n) store_first(load_first(from + i, n - i), out + i, n - i);
}

void widen_rows(const Weight& w, int first, int rows, float* out) {
  const int64_t start = int64_t{first} * w.cols, n = int64_t{rows} * w.cols;
  switch (w.type) {
    case WeightType::f32:
      return widen_typed(static_cast<const float*>(w.data) + start, n, out);
    case WeightType::f16:
      return widen_typed(static_cast<const hwy::float16_t*>(w.data) + start, n, out);
    case WeightType::bf16:
      return widen_typed(static_cast<const hwy::bfloat16_t*>(w.data) + start, n, out);
  }
}

// Σ term(x(i)), where term(0) need not be 0: the padding is masked.
template <typename Term>
float sum_of(const float* x, size_t n, const Term& term) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  V total = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) total = hn::Add(total, term(hn::LoadU(d, x + i)));
  if (const size_t rest = n - i) {
    const V last = term(load_first(x + i, rest));
    total = hn::Add(total, hn::IfThenElseZero(hn::FirstN(d, rest), last));
  }
  return sum(d, total);
}

// y(i) = map(i, x(i)), with the same vector code for the padded rest, so that a value does not
// depend on where in the row it stands.
template <typename Map>
void map_values(const float* x, int64_t n, float* y, const Map& map) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(
        map(hn::LoadU(d, x + i), [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d,
        y + i);
  }
  if (const int64_t rest = n - i) {
    const auto other = [&](const float* p) HWY_ATTR { return load_first(p + i, rest); };
    store_first(map(load_first(x + i, rest), other), y + i, rest);
  }
}

void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y) {
  const FloatTag d;
  const float squares = sum_of(x, n, [](V v) HWY_ATTR { return hn::Mul(v, v); });
  const V scale = hn::Set(d, 1.0f / std::sqrt(squares / static_cast<float>(n) + eps));
  map_values(x, n, y,
             [&](V v, const auto& at) HWY_ATTR { return hn::Mul(hn::Mul(v, scale), at(gain)); });
}

void layer_norm_row(const float* x, const float* gain, const float* bias, float eps, int n,
                    float* y) {
  const FloatTag d;
  const float count = static_cast<float>(n);
  const V mean = hn::Set(d, sum_of(x, n, [](V v) HWY_ATTR { return v; }) / count);
  const float variance = sum_of(x, n,
                                [&](V v) HWY_ATTR {
                                  const V c = hn::Sub(v, mean);
                                  return hn::Mul(c, c);
                                }) /
                         count;
  const V scale = hn::Set(d, 1.0f / std::sqrt(variance + eps));
  map_values(x, n, y, [&](V v, const auto& at) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::Sub(v, mean), scale), at(gain), at(bias));
  });
}

int32_t argmax_row(const float* x, int n) {
  const FloatTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  float best = x[0];
  int i = 0;
  if (n >= lanes) {
    V most = hn::LoadU(d, x);
    for (; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
    best = hn::GetLane(hn::MaxOfLanes(d, most));
  }
  for (; i < n; ++i) best = std::max(best, x[i]);
  const float* found = std::find(x, x + n, best);
  return found == x + n ? 0 : static_cast<int32_t>(found - x);  // only NaNs are not found
}

// 1 / (1 + e^−x); below −87 the exponential would leave the range of f32, and the result is 0 to
// every digit that matters.
V sigmoid(V x) {
  const FloatTag d;
  const V one = hn::Set(d, 1.0f);
  const V bounded = hn::Max(x, hn::Set(d, -87.0f));
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(bounded))));
}

void add_values(float* x, const float* y, int64_t n) {
  map_values(x, n, x, [&](V v, const auto& at) HWY_ATTR { return hn::Add(v, at(y)); });
}

void silu_mul_values(float* gate, const float* up, int64_t n) {
  map_values(gate, n, gate,
             [&](V v, const auto& at) HWY_ATTR { return hn::Mul(hn::Mul(v, sigmoid(v)), at(up)); });
}

// x/2 · (1 + tanh u) = x · sigmoid(2u), u = √(2/π) · (x + 0.044715 x³).
void gelu_values(float* x, int64_t n) {
  const FloatTag d;
  const V linear = hn::Set(d, 1.5957691216057308f);
  const V cubic = hn::Set(d, 1.5957691216057308f * 0.044715f);
  map_values(x, n, x, [&](V v, const auto&) HWY_ATTR {
    const V twice_u = hn::Mul(v, hn::MulAdd(cubic, hn::Mul(v, v), linear));
    return hn::Mul(v, sigmoid(twice_u));
  });
}

CpuKernels make_cpu_kernels() {
  return {.gemv = &gemv,
          .widen_rows = &widen_rows,
          .rms_norm_row = &rms_norm_row,
          .layer_norm_row = &layer_norm_row,
          .argmax_row = &argmax_row,
          .add_values = &add_values,
          .silu_mul_values = &silu_mul_values,
          .gelu_values = &gelu_values};
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_cpu_kernels);

CpuKernels cpu_kernels(int64_t simd_target) {
  return KVMARK_DISPATCH(make_cpu_kernels, simd_target)();
}

}  // namespace kvmark
#endif  // HWY_ONCE
