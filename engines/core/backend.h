// The second seam: the dense operations of a device. The decoder is written once over it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engines/core/tensor.h"

namespace kvmark {

enum class WeightType { f32, f16, bf16 };
inline int weight_bytes(WeightType type) { return type == WeightType::f32 ? 4 : 2; }

// A matrix of parameters in the device's memory: (rows = outputs, cols = inputs), row-major, kept
// as `type`. Owned by the backend that loaded it.
struct Weight {
  const void* data = nullptr;
  int rows = 0;
  int cols = 0;
  WeightType type = WeightType::f32;

  bool empty() const { return data == nullptr; }
  int64_t bytes() const { return int64_t{rows} * cols * weight_bytes(type); }
};

// Fills `out` (cols floats) with row `row` of a matrix on its way into a backend. Rows are asked
// for in any order, from several threads at once.
using RowSource = std::function<void(int row, float* out)>;

// Every call enqueues work in order; only sync() blocks, and timing syncs at both ends. On the CPU
// each call is complete on return.
class Backend {
 public:
  virtual ~Backend() = default;

  // Copies a matrix to the device, rounding to `type` (nearest even).
  virtual Weight load(int rows, int cols, WeightType type, const RowSource& source) = 0;
  // Activation memory that lives as long as the backend; contents undefined.
  virtual Tensor alloc(int rows, int cols) = 0;

  // y(r, o) = Σ_i x(r, i) · w(o, i) + bias(o). x: (n, w.cols), y: (n, w.rows); bias: null or
  // (1, w.rows) kept as f32.
  virtual void matmul(Tensor x, const Weight& w, const Weight* bias, Tensor y) = 0;
  // x(r, ·) → x / sqrt(mean(x²) + eps) · gain (Zhang & Sennrich, 2019). gain: (1, cols) f32.
  virtual void rms_norm(Tensor x, const Weight& gain, float eps, Tensor y) = 0;
  // (x − mean) / sqrt(var + eps) · gain + bias (Ba et al., 2016).
  virtual void layer_norm(Tensor x, const Weight& gain, const Weight& bias, float eps,
                          Tensor y) = 0;
  // x += y.
  virtual void add(Tensor x, Tensor y) = 0;
  // gate = silu(gate) ⊙ up (SwiGLU, Shazeer 2020).
  virtual void silu_mul(Tensor gate, Tensor up) = 0;
  // x = gelu(x), tanh form (Hendrycks & Gimpel, 2016; as GPT-2 uses it).
  virtual void gelu(Tensor x) = 0;
  // y(r, ·) = table(tokens[r], ·).
  virtual void embed(const Weight& table, std::span<const int32_t> tokens, Tensor y) = 0;
  // to(i, ·) = from(rows[i], ·).
  virtual void gather(Tensor from, std::span<const int> rows, Tensor to) = 0;
  // Index of the largest value of each row, the first where several are.
  virtual void argmax(Tensor x, std::span<int32_t> out) = 0;
  virtual void sync() = 0;

  // Bytes held by weights; activations are not counted.
  virtual int64_t weight_bytes_held() const = 0;
  virtual std::string name() const = 0;
};

}  // namespace kvmark
