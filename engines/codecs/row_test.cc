// Rows quantized as vectors against group.h, on every SIMD target of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engines/codecs/group.h"
#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/codecs/row_test.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

#include "engines/codecs/row-inl.h"

#ifndef KVMARK_CODECS_QUANTIZE_ROW
#define KVMARK_CODECS_QUANTIZE_ROW
namespace kvmark {

// quantize_row of one target.
template <typename Code>
using QuantizeRow = int (*)(const float* row, int dim, uint16_t* words, Code* codes);

struct RowKernels {
  QuantizeRow<int8_t> int8_g32, int8_g128, int4_g32, int4_g64;
  QuantizeRow<uint8_t> int8_asym_g32, int8_asym_g128, int4_asym_g32, int4_asym_g64;
};

}  // namespace kvmark
#endif

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

template <typename Group, int kGroup, typename Code>
int quantize(const float* row, int dim, uint16_t* words, Code* codes) {
  return quantize_row<Group, kGroup>(row, dim, words, codes);
}

RowKernels make_row_kernels() {
  return {&quantize<SymmetricGroup<127>, 32>,  &quantize<SymmetricGroup<127>, 128>,
          &quantize<SymmetricGroup<7>, 32>,    &quantize<SymmetricGroup<7>, 64>,
          &quantize<AsymmetricGroup<255>, 32>, &quantize<AsymmetricGroup<255>, 128>,
          &quantize<AsymmetricGroup<15>, 32>,  &quantize<AsymmetricGroup<15>, 64>};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_row_kernels);

namespace {

// What group.h makes of a row, value by value, against what the vectors do.
template <typename Group, typename Code>
void expect_as_group(QuantizeRow<Code> quantize, int group, const std::vector<float>& row) {
  const int dim = static_cast<int>(row.size());
  const size_t words_of_row = static_cast<size_t>(groups_of(dim, group) * Group::kWords);
  std::vector<uint16_t> words(words_of_row + 1, 0xabcd), expected_words(words_of_row);
  std::vector<Code> codes(row.size() + 1, 77), expected_codes(row.size());
  int expected_clamped = 0;
  for (int first = 0, g = 0; first < dim; first += group, ++g) {
    const int n = std::min(group, dim - first);
    const Group fitted = Group::fit(row.data() + first, n);
    fitted.store(expected_words.data() + g * Group::kWords);
    for (int i = 0; i < n; ++i) {
      expected_codes[first + i] = static_cast<Code>(fitted.code(row[first + i]));
    }
    expected_clamped += fitted.clamped(row.data() + first, n);
  }
  EXPECT_EQ(quantize(row.data(), dim, words.data(), codes.data()), expected_clamped);
  EXPECT_EQ(words.back(), 0xabcd) << "behind the words";
  EXPECT_EQ(codes.back(), 77) << "behind the codes";
  words.pop_back();
  codes.pop_back();
  EXPECT_EQ(words, expected_words);
  EXPECT_EQ(codes, expected_codes);
}

class QuantizedRow : public testing::TestWithParam<int64_t> {
 protected:
  void expect_right(const std::vector<float>& row) const {
    expect_as_group<SymmetricGroup<127>>(kernels_.int8_g32, 32, row);
    expect_as_group<SymmetricGroup<127>>(kernels_.int8_g128, 128, row);
    expect_as_group<SymmetricGroup<7>>(kernels_.int4_g32, 32, row);
    expect_as_group<SymmetricGroup<7>>(kernels_.int4_g64, 64, row);
    expect_as_group<AsymmetricGroup<255>>(kernels_.int8_asym_g32, 32, row);
    expect_as_group<AsymmetricGroup<255>>(kernels_.int8_asym_g128, 128, row);
    expect_as_group<AsymmetricGroup<15>>(kernels_.int4_asym_g32, 32, row);
    expect_as_group<AsymmetricGroup<15>>(kernels_.int4_asym_g64, 64, row);
  }

  const RowKernels kernels_ = KVMARK_DISPATCH(make_row_kernels, GetParam())();
};

// Sizes from f32 subnormals over f16 subnormals to what saturates every scale.
TEST_P(QuantizedRow, OfEverySizeIsAsGroupsSay) {
  std::mt19937_64 generator(1);
  std::normal_distribution<float> normal;
  for (float scale : {1e-42f, 1e-38f, 1e-9f, 1e-6f, 1e-3f, 1.0f, 30.0f, 1e5f, 1e6f, 1e8f, 1e37f}) {
    for (float offset : {0.0f, 3.0f, -3.0f}) {
      for (int dim : {1, 7, 31, 32, 33, 64, 80, 96, 100, 128, 133, 256}) {
        std::vector<float> row(dim);
        for (float& x : row) x = scale * (normal(generator) + offset);
        SCOPED_TRACE(std::to_string(dim) + " of " + std::to_string(scale));
        expect_right(row);
      }
    }
  }
}

// Values of a few bits, so that many stand right between two codes.
TEST_P(QuantizedRow, WithTiesIsAsGroupsSay) {
  std::mt19937_64 generator(2);
  for (int end : {7, 14, 15, 30, 127, 254, 255, 510}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<float> row(100);
      std::uniform_int_distribution<int> value(-end, end);
      for (float& x : row) x = static_cast<float>(value(generator)) * 0.5f;
      row[5] = row[40] = row[70] = static_cast<float>(end) * 0.5f;
      expect_right(row);
    }
  }
}

TEST_P(QuantizedRow, OfZerosAndExtremesIsAsGroupsSay) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  for (int dim : {1, 5, 32, 47, 64}) {
    for (float value : {0.0f, -0.0f, 1.0f, -65504.0f, -65505.0f, 65520.0f, kHuge, -kHuge, kTiny}) {
      std::vector<float> row(dim, value);
      expect_right(row);
      for (float other : {0.0f, -0.0f, kTiny, -kTiny, -kHuge, 8.4e6f}) {
        row[dim / 2] = other;
        expect_right(row);
        row[0] = other;
        expect_right(row);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, QuantizedRow, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
#endif  // HWY_ONCE
