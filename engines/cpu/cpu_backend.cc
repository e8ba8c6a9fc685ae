#include "engines/cpu/cpu_backend.h"

#include <cblas.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engines/codecs/simd.h"
#include "engines/core/bits.h"
#include "engines/core/buffer.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_backend_kernels.h"

namespace kvmark {
namespace {

// Up to this many rows our own kernel, which reads the weights once, is the faster one; a matrix
// product repacks them first, which more rows pay for.
constexpr int kGemvRows = 24;
// Outputs of a block of 2-byte weights that is widened to f32 for the matrix product: small enough
// to stay in the second-level cache between the two.
constexpr int kPanelRows = 128;
// Numbers that make it worth to wake the other threads.
constexpr int64_t kGrain = 16384;
// Weights that are worth a walk of their own: each starts anew what prefetching has learnt.
constexpr int64_t kWalk = 1 << 18;
// Pieces for each thread, so that one that was held up gets fewer.
constexpr int64_t kPiecesPerThread = 4;

// Rounds to the nearest, halves to even.
void narrow(const float* from, int n, WeightType type, uint16_t* out) {
  if (type == WeightType::f16) {
    for (int i = 0; i < n; ++i) out[i] = f32_to_f16(from[i]);
  } else {
    for (int i = 0; i < n; ++i) out[i] = f32_to_bf16(from[i]);
  }
}

const float* floats_of(const Weight& vector) {
  check(vector.type == WeightType::f32 && vector.rows == 1, "gains and biases are (1, n) in f32");
  return static_cast<const float*>(vector.data);
}

int divide_up(int64_t n, int64_t by) { return static_cast<int>((n + by - 1) / by); }

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(ThreadPool& pool) : pool_(pool), panels_(pool.threads()) {
    // Products are cut over our own pool; a second pool inside the library would fight it.
    openblas_set_num_threads(1);
  }

  Weight load(int rows, int cols, WeightType type, const RowSource& source) override {
    check(rows >= 1 && cols >= 1, "a weight of {} x {}", rows, cols);
    Weight w{nullptr, rows, cols, type};
    std::byte* const data = hold(w.bytes());
    weight_bytes_ += w.bytes();
    w.data = data;
    const int block = std::max(1, static_cast<int>(kGrain / cols));
    pool_.run(divide_up(rows, block), [&](int index, int) {
      const int end = std::min(rows, (index + 1) * block);
      if (type == WeightType::f32) {
        for (int r = index * block; r < end; ++r)
          source(r, reinterpret_cast<float*>(data) + int64_t{r} * cols);
        return;
      }
      std::vector<float> row(cols);
      for (int r = index * block; r < end; ++r) {
        source(r, row.data());
        narrow(row.data(), cols, type, reinterpret_cast<uint16_t*>(data) + int64_t{r} * cols);
      }
    });
    if (type != WeightType::f32) reserve_panels(int64_t{std::min(rows, kPanelRows)} * cols);
    return w;
  }

  Tensor alloc(int rows, int cols) override {
    check(rows >= 1 && cols >= 1, "a tensor of {} x {}", rows, cols);
    std::byte* const data = hold(int64_t{rows} * cols * int64_t{sizeof(float)});
    return {reinterpret_cast<float*>(data), rows, cols};
  }

  void matmul(Tensor x, const Weight& w, const Weight* bias, Tensor y) override {
    check(x.cols == w.cols && y.cols == w.rows && y.rows == x.rows,
          "matmul: ({}, {}) by a weight of ({}, {}) into ({}, {})", x.rows, x.cols, w.rows, w.cols,
          y.rows, y.cols);
    check(!bias || bias->cols == w.rows, "matmul: bias of {} for {} outputs", bias ? bias->cols : 0,
          w.rows);
    const float* b = bias ? floats_of(*bias) : nullptr;
    if (x.rows <= kGemvRows) {
      run_gemv(x, w, b, y);
    } else {
      run_gemm(x, w, b, y);
    }
  }

  void rms_norm(Tensor x, const Weight& gain, float eps, Tensor y) override {
    check_norm(x, gain, y);
    for_rows(x, [&, g = floats_of(gain)](int r) {
      kernels_.rms_norm_row(x.row(r), g, eps, x.cols, y.row(r));
    });
  }

  void layer_norm(Tensor x, const Weight& gain, const Weight& bias, float eps, Tensor y) override {
    check_norm(x, gain, y);
    check_norm(x, bias, y);
    for_rows(x, [&, g = floats_of(gain), b = floats_of(bias)](int r) {
      kernels_.layer_norm_row(x.row(r), g, b, eps, x.cols, y.row(r));
    });
  }

  void add(Tensor x, Tensor y) override {
    check_same("add", x, y);
    for_values(x, [&](int64_t i, int64_t n) { kernels_.add_values(x.data + i, y.data + i, n); });
  }

  void silu_mul(Tensor gate, Tensor up) override {
    check_same("silu_mul", gate, up);
    for_values(gate, [&](int64_t i, int64_t n) {
      kernels_.silu_mul_values(gate.data + i, up.data + i, n);
    });
  }

  void gelu(Tensor x) override {
    for_values(x, [&](int64_t i, int64_t n) { kernels_.gelu_values(x.data + i, n); });
  }

  void embed(const Weight& table, std::span<const int32_t> tokens, Tensor y) override {
    check(y.rows == static_cast<int>(tokens.size()) && y.cols == table.cols,
          "embed: {} rows of {} into ({}, {})", tokens.size(), table.cols, y.rows, y.cols);
    for (const int32_t token : tokens) {
      check(token >= 0 && token < table.rows, "embed: row {} of a table of {}", token, table.rows);
    }
    for_rows(y, [&](int r) { kernels_.widen_rows(table, tokens[r], 1, y.row(r)); });
  }

  void gather(Tensor from, std::span<const int> rows, Tensor to) override {
    check(to.rows == static_cast<int>(rows.size()) && to.cols == from.cols,
          "gather: {} rows of {} into ({}, {})", rows.size(), from.cols, to.rows, to.cols);
    for (const int row : rows) {
      check(row >= 0 && row < from.rows, "gather: row {} of {}", row, from.rows);
    }
    for_rows(to, [&](int r) { std::copy_n(from.row(rows[r]), to.cols, to.row(r)); });
  }

  void argmax(Tensor x, std::span<int32_t> out) override {
    check(out.size() == static_cast<size_t>(x.rows), "argmax: {} rows into {}", x.rows, out.size());
    for_rows(x, [&](int r) { out[r] = kernels_.argmax_row(x.row(r), x.cols); });
  }

  void sync() override {}

  int64_t weight_bytes_held() const override { return weight_bytes_; }
  std::string name() const override { return "cpu"; }

 private:
  // Zeroed memory of the backend's lifetime, on a cache line of its own. Small tensors lie together
  // in huge pages: one by one they would not fill any, and how fast pages of 4 KiB are read differs
  // from process to process.
  std::byte* hold(int64_t bytes) {
    constexpr int64_t kChunk = 32 << 20;
    constexpr int64_t kLine = 64;
    bytes = (bytes + kLine - 1) / kLine * kLine;
    if (bytes > chunk_left_) {
      Buffer& chunk = buffers_.emplace_back(static_cast<size_t>(std::max(bytes, kChunk)));
      chunk.advise_huge_pages();
      chunk_at_ = chunk.data();
      chunk_left_ = static_cast<int64_t>(chunk.size());
    }
    chunk_left_ -= bytes;
    return std::exchange(chunk_at_, chunk_at_ + bytes);
  }

  void reserve_panels(int64_t numbers) {
    for (Buffer& panel : panels_) {
      const size_t bytes = numbers * sizeof(float);
      if (panel.size() < bytes) panel = Buffer(bytes);
    }
  }

  static void check_same(const char* what, Tensor a, Tensor b) {
    check(a.rows == b.rows && a.cols == b.cols, "{}: ({}, {}) and ({}, {})", what, a.rows, a.cols,
          b.rows, b.cols);
  }
  static void check_norm(Tensor x, const Weight& vector, Tensor y) {
    check_same("norm", x, y);
    check(vector.cols == x.cols, "norm: a gain or bias of {} for rows of {}", vector.cols, x.cols);
  }

  // Cuts [0, n) into pieces of at least `grain` and body(first, count) over the threads; small
  // loops stay on the caller's thread.
  template <typename Body>
  void for_range(int64_t n, int64_t grain, const Body& body) {
    for_pieces(n, std::clamp<int64_t>(n / grain, 1, kPiecesPerThread * pool_.threads()), body);
  }
  // The same in `pieces` pieces, 1 ≤ pieces ≤ n.
  template <typename Body>
  void for_pieces(int64_t n, int64_t pieces, const Body& body) {
    if (pieces == 1 || pool_.threads() == 1) return body(int64_t{0}, n);
    pool_.run(static_cast<int>(pieces), [&](int index, int) {
      const int64_t first = n * index / pieces, end = n * (index + 1) / pieces;
      body(first, end - first);
    });
  }
  template <typename Body>
  void for_rows(Tensor x, const Body& body) {
    for_range(x.rows, std::max<int64_t>(1, kGrain / x.cols), [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; ++r) body(static_cast<int>(r));
    });
  }
  template <typename Body>
  void for_values(Tensor x, const Body& body) {
    for_range(x.size(), kGrain, body);
  }

  void run_gemv(Tensor x, const Weight& w, const float* bias, Tensor y) {
    // A piece for each thread, more only of large matrices.
    const int64_t weights = int64_t{w.rows} * w.cols, threads = pool_.threads();
    const int64_t least = std::clamp<int64_t>(weights / kGrain, 1, threads);
    const int64_t pieces = std::clamp(weights / kWalk, least, kPiecesPerThread * threads);
    for_pieces(w.rows, std::min<int64_t>(pieces, w.rows), [&](int64_t first, int64_t count) {
      kernels_.gemv(
          {x.data, x.rows, &w, static_cast<int>(first), static_cast<int>(count), bias, y.data});
    });
  }

  void run_gemm(Tensor x, const Weight& w, const float* bias, Tensor y) {
    const bool wide = w.type == WeightType::f32;
    const int block =
        wide ? outputs_of_thread(w.rows) : std::min(kPanelRows, outputs_of_thread(w.rows));
    pool_.run(divide_up(w.rows, block), [&](int index, int thread) {
      const int first = index * block, outs = std::min(block, w.rows - first);
      const float* weights;
      if (wide) {
        weights = static_cast<const float*>(w.data) + int64_t{first} * w.cols;
      } else {
        kernels_.widen_rows(w, first, outs, panels_[thread].as<float>());
        weights = panels_[thread].as<float>();
      }
      if (bias) {
        for (int r = 0; r < y.rows; ++r) std::copy_n(bias + first, outs, y.row(r) + first);
      }
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, x.rows, outs, w.cols, 1.0f, x.data,
                  x.cols, weights, w.cols, bias ? 1.0f : 0.0f, y.data + first, y.cols);
    });
  }

  // An equal share of the outputs, in the width that matrix kernels like.
  int outputs_of_thread(int outputs) const {
    constexpr int kWidth = 16;
    return divide_up(divide_up(outputs, pool_.threads()), kWidth) * kWidth;
  }

  ThreadPool& pool_;
  const CpuKernels kernels_ = cpu_kernels(chosen_simd_target());
  std::vector<Buffer> buffers_;    // of weights and activations; moving a Buffer keeps its memory
  std::byte* chunk_at_ = nullptr;  // what the last of them has left
  int64_t chunk_left_ = 0;
  std::vector<Buffer> panels_;  // [thread] (kPanelRows, cols) widened weights
  int64_t weight_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool) {
  return std::make_unique<CpuBackend>(pool);
}

std::string blas_core() { return openblas_get_corename(); }

}  // namespace kvmark
