#include "engines/attention/rotate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/attention/rope.h"
#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

constexpr int kHeads = 3;

std::vector<float> some_rows(int floats) {
  std::vector<float> rows(floats);
  for (int i = 0; i < floats; ++i) rows[i] = std::sin(0.7f * static_cast<float>(i)) + 2;
  return rows;
}

class Rotate : public testing::TestWithParam<int64_t> {
 protected:
  // kHeads head rows of `x` turned as at `position`; what lies behind them stays.
  std::vector<float> rotated(const std::vector<float>& x, int dim, const Rotation& rotation,
                             float scale = 1.0f) {
    std::vector<float> out(kHeads * dim + 1, 42.0f);
    EXPECT_TRUE(rotate_(x.data(), kHeads, dim, rotation, scale, out.data()));
    EXPECT_EQ(out.back(), 42.0f) << dim;
    out.pop_back();
    return out;
  }

  const RotateHeads rotate_ = rotate_heads(GetParam());
};

TEST_P(Rotate, AgreesWithTheReference) {
  for (RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const auto& [dim, dims] :
         {std::pair{64, 64}, {64, 16}, {64, 2}, {2, 2}, {7, 6}, {80, 80}, {100, 42}, {128, 128}}) {
      const Rope rope{.theta = 10000.0, .dims = dims, .pairing = pairing};
      const RopeTable table(rope, 131072);
      for (int position : {0, 1, 17, 4095, 131071}) {
        const auto x = some_rows(kHeads * dim);
        const auto out = rotated(x, dim, table.at(position), 0.25f);
        std::vector<double> expected(x.begin(), x.end());
        for (int head = 0; head < kHeads; ++head) {
          rope_reference(rope, position, dim, expected.data() + head * dim);
        }
        for (int i = 0; i < kHeads * dim; ++i) {
          ASSERT_NEAR(out[i], 0.25 * expected[i], 5e-7)
              << dims << " of " << dim << " at " << position << ", " << i;
        }
      }
    }
  }
}

TEST_P(Rotate, PositionZeroAndNoRotationAreTheIdentity) {
  for (int dim : {1, 5, 8, 33, 128}) {
    const auto x = some_rows(kHeads * dim);
    EXPECT_EQ(rotated(x, dim, {}), x);
    if (dim < 8) continue;
    const RopeTable table({.theta = 1e6, .dims = 8, .pairing = RopePairing::halves}, 1);
    EXPECT_EQ(rotated(x, dim, table.at(0)), x);
  }
}

TEST_P(Rotate, AHeadHasTheBitsOfTheHeadAlone) {
  for (RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const auto& [dim, dims] : {std::pair{64, 64}, {100, 74}, {23, 22}}) {
      const RopeTable table({.dims = dims, .pairing = pairing}, 100);
      const auto x = some_rows(kHeads * dim);
      const auto together = rotated(x, dim, table.at(99), 0.3f);
      std::vector<float> alone(dim);
      for (int head = 0; head < kHeads; ++head) {
        rotate_(x.data() + head * dim, 1, dim, table.at(99), 0.3f, alone.data());
        EXPECT_EQ(0, std::memcmp(together.data() + head * dim, alone.data(), dim * sizeof(float)));
      }
    }
  }
}

TEST_P(Rotate, SeesWhatIsNotFiniteWhereverItStands) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    const int dim = 75;
    const RopeTable table({.dims = 58, .pairing = pairing}, 10);
    for (const Rotation& rotation : {Rotation(), table.at(0), table.at(9)}) {
      std::vector<float> out(dim);
      for (int i = 0; i < dim; ++i) {
        for (float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
          auto x = some_rows(dim);
          x[i] = bad;
          EXPECT_FALSE(rotate_(x.data(), 1, dim, rotation, 1.0f, out.data())) << i;
        }
      }
    }
  }
  // Finite channels whose rotation is not.
  const std::vector<float> huge(2, std::numeric_limits<float>::max());
  const RopeTable table({.theta = 1, .dims = 2}, 2);
  std::vector<float> out(2);
  EXPECT_TRUE(rotate_(huge.data(), 1, 2, {}, 1.0f, out.data()));
  EXPECT_FALSE(rotate_(huge.data(), 1, 2, table.at(1), 1.0f, out.data()));
}

INSTANTIATE_TEST_SUITE_P(Simd, Rotate, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace kvmark
