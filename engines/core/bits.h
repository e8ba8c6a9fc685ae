// Conversions between f32 and the small float formats, exact to the last bit and free of branches,
// so that a loop over them becomes vector code on every SIMD target and a kernel on a device.
//
// Rounding is to nearest, ties to even. Subnormals are right both ways without relying on how the
// processor treats f32 subnormals on output.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define KVMARK_HD __host__ __device__
#else
#define KVMARK_HD
#endif

// For what must be inlined into a function that is compiled for another SIMD target: only then does
// the compiler use that target's instructions for it.
#define KVMARK_INLINE inline __attribute__((always_inline))

namespace kvmark {

KVMARK_HD KVMARK_INLINE uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return std::bit_cast<uint32_t>(x);
#endif
}

KVMARK_HD KVMARK_INLINE float float_of(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

KVMARK_HD KVMARK_INLINE float abs_of(float x) { return float_of(bits_of(x) & 0x7fffffffu); }

// a or b, by masking: a branch, or one that the compiler makes of a conditional expression, would
// keep loops from becoming vector code.
KVMARK_HD KVMARK_INLINE uint32_t select(bool condition, uint32_t a, uint32_t b) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (a & mask) | (b & ~mask);
}

// x held within ±limit; comparing the bits as integers is what keeps this free of branches.
KVMARK_HD KVMARK_INLINE float clamp_magnitude(float x, float limit) {
  const uint32_t magnitude = bits_of(x) & 0x7fffffffu;
  const uint32_t most = bits_of(limit);
  return float_of((bits_of(x) & 0x80000000u) | (magnitude < most ? magnitude : most));
}

// x held within 0 … limit.
KVMARK_HD KVMARK_INLINE float clamp_positive(float x, float limit) {
  const auto bits = static_cast<int32_t>(bits_of(x));
  const auto most = static_cast<int32_t>(bits_of(limit));
  const int32_t positive = bits > 0 ? bits : 0;
  return float_of(static_cast<uint32_t>(positive < most ? positive : most));
}

inline constexpr float kF16Max = 65504.0f;
inline constexpr float kBf16Max = 0x1.fep127f;
inline constexpr float kE4m3Max = 448.0f;

// IEEE binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
KVMARK_HD KVMARK_INLINE float f16_to_f32(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t rebias = 112u << 23;
  const uint32_t normal = (magnitude << 13) + rebias;
  const uint32_t special = normal + rebias;  // exponent 31 becomes 255: infinities and NaNs
  const uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t finite = select(magnitude < 0x0400u, subnormal, normal);
  return float_of(sign | select(magnitude >= 0x7c00u, special, finite));
}

// From 65520 on the result is infinite; NaNs come out quiet, with the upper bits of their payload.
KVMARK_HD KVMARK_INLINE uint16_t f32_to_f16(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // The carry of the rounding may run into the exponent, which is then right too.
  const uint32_t normal = (magnitude - (112u << 23) + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
  // Beside 0.5 the f32 grid is that of f16 subnormals: the addition rounds.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x03ffu);
  uint32_t half = select(magnitude < 0x38800000u, subnormal, normal);
  half = select(magnitude >= 0x47800000u, 0x7c00u, half);
  half = select(magnitude > 0x7f800000u, nan, half);
  return static_cast<uint16_t>(sign | half);
}

// bfloat16: the upper half of an f32.
KVMARK_HD KVMARK_INLINE float bf16_to_f32(uint16_t brain) {
  return float_of(uint32_t{brain} << 16);
}

KVMARK_HD KVMARK_INLINE uint16_t f32_to_bf16(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint32_t nan = bits >> 16 | 0x0040u;
  return static_cast<uint16_t>(select((bits & 0x7fffffffu) > 0x7f800000u, nan, rounded));
}

// OCP 8-bit floating point E4M3 ("OFP8", 2023): 1 sign, 4 exponent (bias 7), 3 mantissa bits; no
// infinities, NaN is 0x7f and 0xff, largest 448, smallest 2^−9.
KVMARK_HD KVMARK_INLINE float e4m3_to_f32(uint8_t code) {
  const uint32_t sign = uint32_t{code & 0x80u} << 24;
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t normal = (magnitude << 20) + (120u << 23);
  const uint32_t subnormal = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f);
  const uint32_t finite = select(magnitude < 8u, subnormal, normal);
  return float_of(sign | select(magnitude == 0x7fu, 0x7fc00000u, finite));
}

// Saturating: what lies beyond ±448, infinities too, becomes ±448. NaN stays NaN.
KVMARK_HD KVMARK_INLINE uint8_t f32_to_e4m3(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 24 & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
  // Beside 2^14 the f32 grid is 2^−9, that of the subnormals.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0x1p14f) - bits_of(0x1p14f);
  uint32_t code = select(magnitude < 0x3c800000u, subnormal, normal);
  code = select(magnitude > 0x43e00000u, 0x7eu, code);
  code = select(magnitude > 0x7f800000u, 0x7fu, code);
  return static_cast<uint8_t>(sign | code);
}

// The nearest integer of |x| < 2^22, ties to even, without the library's rounding: 1.5·2^23 shifts
// the fraction out.
KVMARK_HD KVMARK_INLINE int32_t round_to_int(float x) {
  const float shift = 0x1.8p23f;
  return static_cast<int32_t>(bits_of(x + shift) - bits_of(shift));
}

}  // namespace kvmark
