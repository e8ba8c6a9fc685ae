#include "engines/core/bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvmark {
namespace {

// A small float format by its definition, in double: independent of the bit tricks under test.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;  // the largest exponent is reserved; otherwise only the all-ones code is NaN

  int codes() const { return 1 << (exponent_bits + mantissa_bits); }
  double value(int magnitude) const {
    const int exponent = magnitude >> mantissa_bits;
    const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
    const bool last = exponent == (1 << exponent_bits) - 1;
    if (infinities && last) return mantissa ? std::nan("") : INFINITY;
    if (!infinities && magnitude == codes() - 1) return std::nan("");
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                         : std::ldexp(1 + fraction, exponent - bias);
  }
  int largest() const {
    return infinities ? ((1 << exponent_bits) - 1) * (1 << mantissa_bits) - 1 : codes() - 2;
  }
};

// The conversions are always inlined, so that they cannot be passed as functions themselves.
const auto to_f16 = [](float x) { return f32_to_f16(x); };
const auto to_bf16 = [](float x) { return f32_to_bf16(x); };
const auto to_e4m3 = [](float x) { return f32_to_e4m3(x); };
const auto from_f16 = [](uint16_t code) { return f16_to_f32(code); };
const auto from_bf16 = [](uint16_t code) { return bf16_to_f32(code); };
const auto from_e4m3 = [](uint8_t code) { return e4m3_to_f32(code); };

constexpr FloatFormat kF16{5, 10, 15, true};
constexpr FloatFormat kBf16{8, 7, 127, true};
constexpr FloatFormat kE4m3{4, 3, 7, false};

template <typename Code, typename Encode, typename Decode>
void expect_all_codes_round_trip(const FloatFormat& format, Encode encode, Decode decode) {
  const int sign_bit = format.codes();
  for (int magnitude = 0; magnitude < format.codes(); ++magnitude) {
    for (int sign : {0, sign_bit}) {
      const Code code = static_cast<Code>(magnitude | sign);
      const float value = decode(code);
      const double expected = format.value(magnitude);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << code;
        ASSERT_TRUE(std::isnan(decode(encode(value)))) << code;
        continue;
      }
      ASSERT_EQ(std::fabs(value), expected) << code;
      ASSERT_EQ(std::signbit(value), sign != 0) << code;
      if (format.infinities || std::isfinite(expected)) {
        ASSERT_EQ(encode(value), code);
      }
    }
  }
}

// Around every pair of neighbouring codes: below, at and above the midpoint.
template <typename Code, typename Encode>
void expect_rounds_to_nearest_even(const FloatFormat& format, Encode encode) {
  const int sign_bit = format.codes();
  for (int low = 0; low < format.largest(); ++low) {
    const double middle = (format.value(low) + format.value(low + 1)) / 2;
    const float tie = static_cast<float>(middle);
    ASSERT_EQ(tie, middle) << "midpoints are f32 numbers";
    const int even = low % 2 == 0 ? low : low + 1;
    ASSERT_EQ(encode(tie), even) << tie;
    ASSERT_EQ(encode(std::nextafterf(tie, 0.0f)), low) << tie;
    ASSERT_EQ(encode(std::nextafterf(tie, INFINITY)), low + 1) << tie;
    ASSERT_EQ(encode(-tie), even | sign_bit) << tie;
    ASSERT_EQ(encode(std::nextafterf(-tie, -INFINITY)), (low + 1) | sign_bit) << tie;
  }
}

TEST(Bits, EveryF16RoundTrips) { expect_all_codes_round_trip<uint16_t>(kF16, to_f16, from_f16); }
TEST(Bits, EveryBf16RoundTrips) {
  expect_all_codes_round_trip<uint16_t>(kBf16, to_bf16, from_bf16);
}
TEST(Bits, EveryE4m3RoundTrips) { expect_all_codes_round_trip<uint8_t>(kE4m3, to_e4m3, from_e4m3); }

TEST(Bits, F16RoundsToNearestEven) { expect_rounds_to_nearest_even<uint16_t>(kF16, to_f16); }
TEST(Bits, Bf16RoundsToNearestEven) { expect_rounds_to_nearest_even<uint16_t>(kBf16, to_bf16); }
TEST(Bits, E4m3RoundsToNearestEven) { expect_rounds_to_nearest_even<uint8_t>(kE4m3, to_e4m3); }

TEST(Bits, F16OverflowsToInfinityWhereNearestEvenSays) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafterf(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
}

TEST(Bits, Bf16OverflowsToInfinity) {
  EXPECT_EQ(f32_to_bf16(kBf16Max), 0x7f7f);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_bf16(-INFINITY), 0xff80);
}

TEST(Bits, E4m3Saturates) {
  for (float x : {448.0f, 449.0f, 464.0f, 465.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(e4m3_to_f32(f32_to_e4m3(x)), 448.0f) << x;
    EXPECT_EQ(e4m3_to_f32(f32_to_e4m3(-x)), -448.0f) << x;
  }
}

TEST(Bits, NansWithAnyPayloadStayNans) {
  for (uint32_t payload : {1u, 0x1fffu, 0x2000u, 0x400000u, 0x7fffffu}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      const float nan = float_of(sign | 0x7f800000u | payload);
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(nan))));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan))));
      EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(nan))));
    }
  }
}

TEST(Bits, TinyNumbersRoundToZeroOrTheSmallest) {
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // the tie goes to even
  EXPECT_EQ(f32_to_f16(std::nextafterf(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(f32_to_e4m3(0x1p-10f), 0);
  EXPECT_EQ(f32_to_e4m3(std::nextafterf(0x1p-10f, 1.0f)), 1);
}

TEST(Bits, ClampsKeepWhatIsWithin) {
  EXPECT_EQ(clamp_magnitude(3.0f, 7.0f), 3.0f);
  EXPECT_EQ(clamp_magnitude(-8.0f, 7.0f), -7.0f);
  EXPECT_EQ(clamp_magnitude(INFINITY, 7.0f), 7.0f);
  EXPECT_EQ(clamp_positive(3.0f, 7.0f), 3.0f);
  EXPECT_EQ(clamp_positive(1e30f, 7.0f), 7.0f);
  for (float x : {0.0f, -0.0f, -1e-30f, -INFINITY}) EXPECT_EQ(clamp_positive(x, 7.0f), 0.0f);
}

TEST(Bits, RoundToIntIsNearestEven) {
  for (float x : {0.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 127.49f, -127.51f, 4194303.0f}) {
    EXPECT_EQ(round_to_int(x), static_cast<int32_t>(std::nearbyint(x))) << x;
  }
}

}  // namespace
}  // namespace kvmark
