// The backend's kernels on every SIMD target that this machine has, against plain loops in double.
#include "engines/cpu/cpu_backend_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "engines/codecs/simd.h"
#include "engines/cpu/cpu_backend.h"
#include "engines/cpu/cpu_backend_testing.h"

namespace kvmark {
namespace {

constexpr float kUntouched = 12345.0f;
constexpr WeightType kTypes[] = {WeightType::f32, WeightType::f16, WeightType::bf16};
// Shorter than any vector, rests behind whole ones, and none.
constexpr int kWidths[] = {1, 3, 5, 8, 16, 17, 33, 64, 131};

std::vector<float> waves(int64_t n, int salt = 0) {
  std::vector<float> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = wave(3 * i + salt);
  return x;
}

// A matrix of waves in memory of its own, nothing behind it.
class Matrix {
 public:
  Matrix(int rows, int cols, WeightType type) {
    const int64_t n = int64_t{rows} * cols;
    for (int64_t i = 0; i < n; ++i) {
      if (type == WeightType::f32) {
        floats_.push_back(wave(i));
      } else {
        halves_.push_back(type == WeightType::f16 ? f32_to_f16(wave(i)) : f32_to_bf16(wave(i)));
      }
    }
    weight_ = {floats_.empty() ? static_cast<const void*>(halves_.data()) : floats_.data(), rows,
               cols, type};
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  const Weight& weight() const { return weight_; }
  float at(int row, int col) const {
    return rounded(wave(int64_t{row} * weight_.cols + col), weight_.type);
  }

 private:
  std::vector<float> floats_;
  std::vector<uint16_t> halves_;
  Weight weight_;
};

class BackendKernels : public testing::TestWithParam<int64_t> {
 protected:
  const CpuKernels kernels = cpu_kernels(GetParam());
};

TEST_P(BackendKernels, GemvEqualsTheSum) {
  constexpr int kOuts = 15, kFirst = 2, kCount = 11;  // pairs, and a rest
  for (const WeightType type : kTypes) {
    for (const int cols : kWidths) {
      const Matrix w(kOuts, cols, type);
      const std::vector<float> bias = waves(kOuts, 5);
      for (const int rows : {1, 2, 3, 4, 5, 7, 8, 9}) {
        const std::vector<float> x = waves(int64_t{rows} * cols, 1);
        std::vector<float> y(rows * kOuts, kUntouched);
        kernels.gemv({x.data(), rows, &w.weight(), kFirst, kCount, bias.data(), y.data()});
        for (int r = 0; r < rows; ++r) {
          for (int o = 0; o < kOuts; ++o) {
            double sum = bias[o];
            for (int i = 0; i < cols; ++i) sum += double{x[r * cols + i]} * w.at(o, i);
            const bool asked = o >= kFirst && o < kFirst + kCount;
            ASSERT_NEAR(y[r * kOuts + o], asked ? sum : kUntouched, 2e-5)
                << rows << " rows of " << cols << ", output " << o;
          }
        }
      }
    }
  }
}

TEST_P(BackendKernels, WidenedRowsAreExactAndEndWhereTheyShould) {
  for (const WeightType type : kTypes) {
    for (const int cols : kWidths) {
      const Matrix w(4, cols, type);
      std::vector<float> out(2 * cols + 1, kUntouched);
      kernels.widen_rows(w.weight(), 1, 2, out.data());
      for (int i = 0; i < 2 * cols; ++i) ASSERT_EQ(out[i], w.at(1 + i / cols, i % cols));
      EXPECT_EQ(out.back(), kUntouched) << cols;
    }
  }
}

TEST_P(BackendKernels, NormsEqualTheirFormulas) {
  for (const int n : kWidths) {
    std::vector<float> x = waves(n);
    for (float& value : x) value = 3 * value + 2;
    const std::vector<float> gain = waves(n, 1), bias = waves(n, 2);
    std::vector<float> rms(n + 1, kUntouched), layer(n + 1, kUntouched);
    kernels.rms_norm_row(x.data(), gain.data(), 1e-3f, n, rms.data());
    kernels.layer_norm_row(x.data(), gain.data(), bias.data(), 1e-3f, n, layer.data());
    double mean = 0, square = 0, variance = 0;
    for (const double value : x) mean += value / n, square += value * value / n;
    for (const double value : x) variance += (value - mean) * (value - mean) / n;
    for (int i = 0; i < n; ++i) {
      ASSERT_NEAR(rms[i], x[i] / std::sqrt(square + 1e-3) * gain[i], 1e-5) << n;
      ASSERT_NEAR(layer[i], (x[i] - mean) / std::sqrt(variance + 1e-3) * gain[i] + bias[i], 1e-5)
          << n;
    }
    EXPECT_EQ(rms[n], kUntouched);
    EXPECT_EQ(layer[n], kUntouched);
  }
}

TEST_P(BackendKernels, ArgmaxIsTheFirstOfTheLargest) {
  for (const int n : kWidths) {
    for (int at = 0; at < n; ++at) {
      std::vector<float> x(n, -5.0f);
      x[at] = x[n - 1] = -1.0f;
      ASSERT_EQ(kernels.argmax_row(x.data(), n), at) << n;
    }
  }
}

TEST_P(BackendKernels, ActivationsEqualTheirFormulas) {
  for (const int n : kWidths) {
    std::vector<float> start = waves(n);
    for (float& value : start) value *= 12;  // both tails of the sigmoid
    start.push_back(kUntouched);
    const std::vector<float> other = waves(n, 7);
    std::vector<float> sum = start, silu = start, gelu = start;
    kernels.add_values(sum.data(), other.data(), n);
    kernels.silu_mul_values(silu.data(), other.data(), n);
    kernels.gelu_values(gelu.data(), n);
    for (int i = 0; i < n; ++i) {
      const double x = start[i];
      ASSERT_EQ(sum[i], start[i] + other[i]);
      ASSERT_NEAR(silu[i], x / (1 + std::exp(-x)) * other[i], 1e-5);
      const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
      ASSERT_NEAR(gelu[i], x / 2 * (1 + std::tanh(u)), 1e-5);
    }
    EXPECT_EQ(sum[n], kUntouched);
    EXPECT_EQ(silu[n], kUntouched);
    EXPECT_EQ(gelu[n], kUntouched);
  }
}

// Does a backend's product have the bits of this target? (The lanes of a sum differ from target to
// target, and so does its rounding.)
bool backend_runs(int64_t target) {
  constexpr int kOuts = 64, kCols = 331;
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const Matrix w(kOuts, kCols, WeightType::f32);
  std::vector<float> x = waves(kCols), expected(kOuts), found(kOuts);
  cpu_kernels(target).gemv({x.data(), 1, &w.weight(), 0, kOuts, nullptr, expected.data()});
  backend->matmul({x.data(), 1, kCols}, w.weight(), nullptr, {found.data(), 1, kOuts});
  return expected == found;
}

// The choice is made once in a process, here before any test: each target has a process of its own,
// which starts anew with this environment.
TEST_P(BackendKernels, AreThoseThatKvmarkSimdNames) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const char* before = std::getenv("KVMARK_SIMD");
  const std::string kept = before ? before : "";
  setenv("KVMARK_SIMD", hwy::TargetName(GetParam()), 1);
  EXPECT_EXIT(std::exit(backend_runs(GetParam()) ? 0 : 1), testing::ExitedWithCode(0), "");
  setenv("KVMARK_SIMD", kept.c_str(), 1);
}

INSTANTIATE_TEST_SUITE_P(Simd, BackendKernels, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
