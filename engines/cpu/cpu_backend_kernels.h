// The inner loops of the CPU backend, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

#include "engines/core/backend.h"

namespace kvmark {

// y(r, o) = Σ_i x(r, i) · w(o, i) + bias(o) for the outputs [first, first + outs) of a matrix.
struct GemvTask {
  const float* x = nullptr;  // (rows, cols)
  int rows = 0;
  const Weight* w = nullptr;
  int first = 0, outs = 0;
  const float* bias = nullptr;  // (w.rows) or null
  float* y = nullptr;           // (rows, w.rows)
};

// The kernels as compiled for one SIMD target.
struct CpuKernels {
  // One pass over the weights for all rows: made for a few rows. A row's result is the same, bit
  // for bit, whatever other rows are in the task.
  void (*gemv)(const GemvTask& task);

  // Rows [first, first + rows) of a matrix as f32: out (rows, w.cols).
  void (*widen_rows)(const Weight& w, int first, int rows, float* out);

  // One row of `n` numbers each, as Backend says.
  void (*rms_norm_row)(const float* x, const float* gain, float eps, int n, float* y);
  void (*layer_norm_row)(const float* x, const float* gain, const float* bias, float eps, int n,
                         float* y);
  int32_t (*argmax_row)(const float* x, int n);

  // `n` numbers in place; each result depends on its own operands only.
  void (*add_values)(float* x, const float* y, int64_t n);
  void (*silu_mul_values)(float* gate, const float* up, int64_t n);
  void (*gelu_values)(float* x, int64_t n);
};

// Those of one of simd_targets() (codecs/simd.h).
CpuKernels cpu_kernels(int64_t simd_target);

}  // namespace kvmark
