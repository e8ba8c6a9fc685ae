#include "engines/cpu/cpu_backend_kernels.h"

#include <algorithm>
#include <cmath>

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/cpu/cpu_backend_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVec;

float sum(FloatTag d, V v) { return hn::GetLane(hn::SumOfLanes(d, v)); }

// Where the results of a task go.
struct Sink {
  const GemvTask& task;
  void put(int row, int out, float value) const {
    const float bias = task.bias ? task.bias[out] : 0.0f;
    task.y[static_cast<int64_t>(row) * task.w->rows + out] = value + bias;
  }
};

// Both kernels below add up a (row, output) pair in one accumulator in ascending order, so that
// they agree bit for bit. Four accumulators or more hide the latency of the multiply-adds.

// Outputs out, out + apart, out + 2 · apart and out + 3 · apart of one row.
template <typename T>
void dot_1x4(const GemvTask& task, int row, int out, int apart) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), cols = task.w->cols;
  const float* x = task.x + row * cols;
  const T* w0 = static_cast<const T*>(task.w->data) + out * cols;
  const T *w1 = w0 + apart * cols, *w2 = w1 + apart * cols, *w3 = w2 + apart * cols;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + lanes <= cols; i += lanes) {
    const V xi = hn::LoadU(d, x + i);
    a0 = hn::MulAdd(xi, load(w0 + i), a0);
    a1 = hn::MulAdd(xi, load(w1 + i), a1);
    a2 = hn::MulAdd(xi, load(w2 + i), a2);
    a3 = hn::MulAdd(xi, load(w3 + i), a3);
  }
  if (const size_t rest = cols - i) {
    const V xi = load_first(x + i, rest);
    a0 = hn::MulAdd(xi, load_first(w0 + i, rest), a0);
    a1 = hn::MulAdd(xi, load_first(w1 + i, rest), a1);
    a2 = hn::MulAdd(xi, load_first(w2 + i, rest), a2);
    a3 = hn::MulAdd(xi, load_first(w3 + i, rest), a3);
  }
  const Sink sink{task};
  sink.put(row, out, sum(d, a0));
  sink.put(row, out + apart, sum(d, a1));
  sink.put(row, out + 2 * apart, sum(d, a2));
  sink.put(row, out + 3 * apart, sum(d, a3));
}

// One output of four rows: a weight is widened once for all of them.
template <typename T>
void dot_4x1(const GemvTask& task, int row, int out) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), cols = task.w->cols;
  const float* x0 = task.x + row * cols;
  const float *x1 = x0 + cols, *x2 = x1 + cols, *x3 = x2 + cols;
  const T* w = static_cast<const T*>(task.w->data) + out * cols;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + lanes <= cols; i += lanes) {
    const V wi = load(w + i);
    a0 = hn::MulAdd(hn::LoadU(d, x0 + i), wi, a0);
    a1 = hn::MulAdd(hn::LoadU(d, x1 + i), wi, a1);
    a2 = hn::MulAdd(hn::LoadU(d, x2 + i), wi, a2);
    a3 = hn::MulAdd(hn::LoadU(d, x3 + i), wi, a3);
  }
  if (const size_t rest = cols - i) {
    const V wi = load_first(w + i, rest);
    a0 = hn::MulAdd(load_first(x0 + i, rest), wi, a0);
    a1 = hn::MulAdd(load_first(x1 + i, rest), wi, a1);
    a2 = hn::MulAdd(load_first(x2 + i, rest), wi, a2);
    a3 = hn::MulAdd(load_first(x3 + i, rest), wi, a3);
  }
  const Sink sink{task};
  sink.put(row, out, sum(d, a0));
  sink.put(row + 1, out, sum(d, a1));
  sink.put(row + 2, out, sum(d, a2));
  sink.put(row + 3, out, sum(d, a3));
}

template <typename T>
void dot_1x1(const GemvTask& task, int row, int out) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), cols = task.w->cols;
  const float* x = task.x + row * cols;
  const T* w = static_cast<const T*>(task.w->data) + out * cols;
  V a = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= cols; i += lanes) a = hn::MulAdd(hn::LoadU(d, x + i), load(w + i), a);
  if (const size_t rest = cols - i) {
    a = hn::MulAdd(load_first(x + i, rest), load_first(w + i, rest), a);
  }
  Sink{task}.put(row, out, sum(d, a));
}

template <typename T>
void gemv_typed(const GemvTask& task) {
  const int end = task.first + task.outs;
  if (task.rows >= 4) {
    for (int out = task.first; out < end; ++out) {
      for (int row = 0; row < task.rows; row += 4) {
        // The last group may overlap the one before and writes the same numbers again.
        dot_4x1<T>(task, std::min(row, task.rows - 4), out);
      }
    }
    return;
  }
  // Each of the four walks through a quarter of its own from end to end: long streams in memory,
  // which prefetchers follow to the full bandwidth even where rows are short.
  const int quarter = task.outs / 4;
  for (int out = task.first; out < task.first + quarter; ++out) {
    for (int row = 0; row < task.rows; ++row) dot_1x4<T>(task, row, out, quarter);
  }
  for (int out = task.first + 4 * quarter; out < end; ++out) {
    for (int row = 0; row < task.rows; ++row) dot_1x1<T>(task, row, out);
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
