#include "engines/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engines/core/check.h"
#include "engines/cpu/cpu_backend_testing.h"

namespace kvmark {
namespace {

class CpuBackendTest : public testing::TestWithParam<int> {
 protected:
  Weight load(int rows, int cols, WeightType type = WeightType::f32) {
    return backend->load(rows, cols, type, [=](int r, float* out) {
      for (int i = 0; i < cols; ++i) out[i] = wave(int64_t{r} * cols + i);
    });
  }
  Tensor filled(int rows, int cols, int salt = 0) {
    const Tensor t = backend->alloc(rows, cols);
    for (int64_t i = 0; i < t.size(); ++i) t.data[i] = wave(i * 3 + salt);
    return t;
  }

  ThreadPool pool{GetParam()};
  std::unique_ptr<Backend> backend = make_cpu_backend(pool);
};

INSTANTIATE_TEST_SUITE_P(Threads, CpuBackendTest, testing::Values(1, 2, 3));

// Odd widths leave a rest behind every vector length; the rows cross from the one kernel to the
// other, and 300 outputs need more than one block of widened weights.
TEST_P(CpuBackendTest, MatmulEqualsTheSum) {
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
    for (const auto& [outs, cols] : {std::pair{1, 1}, {5, 7}, {6, 64}, {300, 65}, {37, 130}}) {
      const Weight w = load(outs, cols, type), bias = load(1, outs);
      for (const int rows : {1, 2, 3, 4, 5, 7, 8, 24, 25, 40}) {
        for (const Weight* b : {static_cast<const Weight*>(nullptr), &bias}) {
          const Tensor x = filled(rows, cols), y = backend->alloc(rows, outs);
          std::fill_n(y.data, y.size(), std::numeric_limits<float>::quiet_NaN());
          backend->matmul(x, w, b, y);
          for (int r = 0; r < rows; ++r) {
            for (int o = 0; o < outs; ++o) {
              double sum = b ? wave(o) : 0.0;
              for (int i = 0; i < cols; ++i) {
                sum += double(x.row(r)[i]) * rounded(wave(int64_t{o} * cols + i), type);
              }
              ASSERT_NEAR(y.row(r)[o], sum, 2e-5) << rows << "x" << cols << "x" << outs;
            }
          }
        }
      }
    }
  }
}

TEST_P(CpuBackendTest, AFewRowsAreBitEqualToTheRowsAlone) {
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
    const Weight w = load(203, 77, type);
    const Tensor x = filled(7, 77), together = backend->alloc(7, 203),
                 alone = backend->alloc(1, 203);
    backend->matmul(x, w, nullptr, together);
    for (int r = 0; r < 7; ++r) {
      backend->matmul(x.slice(r, 1), w, nullptr, alone);
      EXPECT_EQ(std::memcmp(alone.data, together.row(r), 203 * sizeof(float)), 0) << r;
    }
  }
}

TEST_P(CpuBackendTest, LoadRoundsToNearestEven) {
  const float values[] = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65504.0f,           0x1p-24f,
                          0x1.8p-25f,      1.0f + 0x1p-8f,      1.0f + 3 * 0x1p-8f, -2.5f};
  const auto source = [&](int, float* out) {
    std::copy(std::begin(values), std::end(values), out);
  };
  const auto stored = [&](WeightType type) {
    const auto* data = static_cast<const uint16_t*>(backend->load(1, 8, type, source).data);
    return std::vector<uint16_t>(data, data + 8);
  };
  EXPECT_THAT(stored(WeightType::f16),
              testing::ElementsAre(0x3c00, 0x3c02, 0x7bff, 0x0001, 0x0001, 0x3c04, 0x3c0c, 0xc100));
  EXPECT_THAT(stored(WeightType::bf16),
              testing::ElementsAre(0x3f80, 0x3f80, 0x4780, 0x3380, 0x3340, 0x3f80, 0x3f82, 0xc020));
}

TEST_P(CpuBackendTest, NormsEqualTheirFormulas) {
  for (const int cols : {1, 5, 64, 131}) {
    const Weight gain = load(1, cols), bias = load(1, cols);
    const Tensor x = filled(70, cols), rms = backend->alloc(70, cols),
                 ln = backend->alloc(70, cols);
    for (int64_t i = 0; i < x.size(); ++i) x.data[i] = 3 * x.data[i] + 2;
    backend->rms_norm(x, gain, 1e-3f, rms);
    backend->layer_norm(x, gain, bias, 1e-3f, ln);
    for (int r = 0; r < x.rows; ++r) {
      double mean = 0, square = 0, variance = 0;
      for (int i = 0; i < cols; ++i) mean += x.row(r)[i] / double(cols);
      for (int i = 0; i < cols; ++i) {
        square += double(x.row(r)[i]) * x.row(r)[i] / cols;
        variance += (x.row(r)[i] - mean) * (x.row(r)[i] - mean) / cols;
      }
      for (int i = 0; i < cols; ++i) {
        ASSERT_NEAR(rms.row(r)[i], x.row(r)[i] / std::sqrt(square + 1e-3) * wave(i), 1e-5);
        ASSERT_NEAR(ln.row(r)[i],
                    (x.row(r)[i] - mean) / std::sqrt(variance + 1e-3) * wave(i) + wave(i), 1e-5);
      }
    }
  }
}

TEST_P(CpuBackendTest, ActivationsEqualTheirFormulasFarOutToo) {
  const int n = 20011;  // more than one piece, and a rest
  Tensor gate = backend->alloc(1, n), up = filled(1, n), x = backend->alloc(1, n);
  for (int i = 0; i < n; ++i) gate.data[i] = x.data[i] = static_cast<float>(i - n / 2) * 0.02f;
  gate.data[0] = -1e30f;
  gate.data[n - 1] = 1e30f;
  const std::vector<float> before(gate.data, gate.data + n);
  backend->silu_mul(gate, up);
  backend->gelu(x);
  for (int i = 0; i < n; ++i) {
    const double g = before[i], silu = g / (1 + std::exp(-g)) * wave(3 * i);
    ASSERT_NEAR(gate.data[i], silu, 2e-6 * std::abs(silu) + 1e-6) << g;
    const double v = static_cast<float>(i - n / 2) * 0.02f;
    const double gelu = v / 2 * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    ASSERT_NEAR(x.data[i], gelu, 2e-6 * std::abs(gelu) + 2e-6) << v;
  }
}

TEST_P(CpuBackendTest, AddEmbedGather) {
  const Tensor x = filled(9, 33), y = filled(9, 33, 5), sum = filled(9, 33);
  backend->add(sum, y);
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum.data[i], x.data[i] + y.data[i]);

  const Weight table = load(11, 33, WeightType::f16);
  const std::vector<int32_t> tokens{10, 0, 10};
  const Tensor rows = backend->alloc(3, 33);
  backend->embed(table, tokens, rows);
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < 33; ++i) {
      ASSERT_EQ(rows.row(r)[i], rounded(wave(tokens[r] * 33 + i), WeightType::f16));
    }
  }
  const std::vector<int> wanted{8, 2};
  const Tensor kept = backend->alloc(2, 33);
  backend->gather(x, wanted, kept);
  EXPECT_EQ(std::memcmp(kept.row(0), x.row(8), 33 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(kept.row(1), x.row(2), 33 * sizeof(float)), 0);
}

TEST_P(CpuBackendTest, ArgmaxTakesTheFirstOfTheLargest) {
  for (const int n : {1, 3, 16, 50, 1000}) {
    const Tensor x = backend->alloc(3, n);
    std::fill_n(x.data, x.size(), -5.0f);
    x.row(1)[n / 2] = x.row(1)[n - 1] = -1.0f;
    x.row(2)[n - 1] = 7.0f;
    std::vector<int32_t> found(3, -1);
    backend->argmax(x, found);
    EXPECT_THAT(found, testing::ElementsAre(0, n / 2, n - 1));
  }
}

TEST_P(CpuBackendTest, MismatchedShapesAreBugs) {
  const Weight w = load(4, 6);
  EXPECT_THROW(backend->matmul(filled(2, 5), w, nullptr, filled(2, 4)), LogicError);
  EXPECT_THROW(backend->matmul(filled(2, 6), w, nullptr, filled(2, 6)), LogicError);
  EXPECT_THROW(backend->add(filled(2, 5), filled(5, 2)), LogicError);
  EXPECT_THROW(backend->embed(w, std::vector<int32_t>{4}, filled(1, 6)), LogicError);
  EXPECT_THROW(backend->gather(filled(2, 5), std::vector<int>{2}, filled(1, 5)), LogicError);
}

TEST_P(CpuBackendTest, CountsTheBytesOfWeights) {
  load(3, 5);
  load(3, 5, WeightType::bf16);
  backend->alloc(100, 100);
  EXPECT_EQ(backend->weight_bytes_held(), 3 * 5 * 4 + 3 * 5 * 2);
}

TEST_P(CpuBackendTest, AnErrorOfASourceReachesTheCaller) {
  EXPECT_THROW(backend->load(5000, 64, WeightType::f16,
                             [](int row, float*) {
                               if (row == 4321) throw RuntimeError("torn file");
                             }),
               RuntimeError);
}

TEST(BlasCore, HasAName) { EXPECT_FALSE(blas_core().empty()); }

}  // namespace
}  // namespace kvmark
