#include "engines/codecs/group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvmark {
namespace {

TEST(Groups, F16NumbersAroundEveryMagnitude) {
  constexpr uint16_t kLargest = 0x7bff;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto expect = [](float x, bool up, uint16_t bits) {
    const StoredF16 number = f16_beside(x, up);
    ASSERT_EQ(number.bits, bits) << x << (up ? " up" : " down");
    ASSERT_EQ(number.value, f16_to_f32(bits)) << x;
  };
  for (uint16_t bits = 0; bits <= kLargest; ++bits) {
    const float here = f16_to_f32(bits);
    expect(here, true, bits);
    expect(here, false, bits);
    if (bits == kLargest) continue;
    const float next = f16_to_f32(bits + 1);
    for (float between :
         {std::nextafter(here, kInf), (here + next) / 2, std::nextafter(next, 0.0f)}) {
      expect(between, true, bits + 1);
      expect(between, false, bits);
    }
  }
  for (float beyond : {65505.0f, 65520.0f, 1e6f, std::numeric_limits<float>::max()}) {
    expect(beyond, true, kLargest);
    expect(beyond, false, kLargest);
  }
}

TEST(Groups, MinimaAreNotAboveTheLowestValue) {
  const auto minimum = [](float low) { return AsymmetricGroup<255>::of(low, low + 1).minimum; };
  EXPECT_EQ(minimum(-1.0f), -1.0f);
  EXPECT_EQ(minimum(std::nextafter(-1.0f, -2.0f)), -1.0f - 0x1p-10f);
  EXPECT_EQ(minimum(std::nextafter(1.0f, 0.0f)), 1.0f - 0x1p-11f);
  EXPECT_EQ(minimum(-1e-10f), -0x1p-24f);
  EXPECT_EQ(minimum(1e-10f), 0.0f);
  EXPECT_EQ(minimum(-1e6f), -65504.0f);
  EXPECT_EQ(minimum(1e6f), 65504.0f);
  for (float zero : {0.0f, -0.0f}) {
    const auto group = AsymmetricGroup<255>::of(zero, zero);
    EXPECT_EQ(group.minimum_bits, 0);
    EXPECT_EQ(group.scale.bits, 0);
  }
}

// No code lies beyond the last, even where the inverse of the scale was rounded up.
TEST(Groups, TheLargestValueHasTheLastCodeAtMost) {
  for (int i = 1; i < 20000; ++i) {
    const float largest = static_cast<float>(i) * 0.37f;
    const auto symmetric = SymmetricGroup<127>::of(largest);
    ASSERT_LE(symmetric.code(largest), 127) << largest;
    ASSERT_GE(symmetric.code(largest), 126) << largest;
    ASSERT_EQ(symmetric.code(-largest), -symmetric.code(largest)) << largest;
    const auto asymmetric = AsymmetricGroup<255>::of(0, largest);
    ASSERT_LE(asymmetric.code(largest), 255) << largest;
    ASSERT_GE(asymmetric.code(largest), 254) << largest;
  }
}

}  // namespace
}  // namespace kvmark
