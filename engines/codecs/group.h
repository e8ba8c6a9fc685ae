// Groups of channels that share a scale: what int8 and int4 have in common.
//
// A group is `kGroup` consecutive channels of a row; the last one is shorter where the group does
// not divide the head dimension. Scales and minima are f16, and values are quantized with the scale
// as stored, not as computed, so that its rounding is part of the code's own rounding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

KVMARK_HD inline int groups_of(int dim, int group) { return (dim + group - 1) / group; }
KVMARK_HD inline int64_t round_up_even(int64_t bytes) { return (bytes + 1) / 2 * 2; }

// An f16 number and its value.
struct StoredF16 {
  uint16_t bits;
  float value;
};

// The f16 number next to a magnitude (≥ 0, taken as 65504 beyond it), not below it (`up`) or not
// above it.
KVMARK_HD KVMARK_INLINE StoredF16 f16_beside(float magnitude, bool up) {
  const float x = magnitude < kF16Max ? magnitude : kF16Max;
  // Ten bits stay behind the leading one; the carry may run into the exponent.
  const uint32_t normal = (bits_of(x) + (up ? 0x1fffu : 0u)) >> 13;
  // Beside 0.5 the f32 grid is that of f16 subnormals.
  const float beside = x + 0.5f;
  const float nearest = beside - 0.5f;
  const int32_t steps =
      static_cast<int32_t>(bits_of(beside) - bits_of(0.5f)) + (up ? nearest < x : -(nearest > x));
  const bool subnormal = x < 0x1p-14f;
  return {static_cast<uint16_t>(subnormal ? static_cast<uint32_t>(steps) : normal - (112u << 10)),
          subnormal ? static_cast<float>(steps) * 0x1p-24f : float_of(normal << 13)};
}

// A non-negative scale in f16; `saturated` where it is beyond the range.
struct GroupScale {
  uint16_t bits;
  float inverse;  // of the scale as stored; 1 for a scale of 0, where all codes are 0
  bool saturated;
};

// Rounded up, so that no value of the group lies beyond its last code. (By the inverse a value may
// do so by its rounding: codes are clamped.)
KVMARK_HD KVMARK_INLINE GroupScale group_scale(float exact) {
  const StoredF16 stored = f16_beside(exact, true);
  return {stored.bits, stored.bits ? 1.0f / stored.value : 1.0f, exact > kF16Max};
}

// What a group's codes mean: x ≈ offset + scale · code. Scale · code is exact in f32 (11 + 8 bits),
// so a fused and an unfused addition give the same bits on every SIMD target.
struct Affine {
  float scale;
  float offset;
};

// Codes −kMax … kMax around zero: x ≈ scale · code. |error| ≤ scale / 2.
template <int kMax>
struct SymmetricGroup {
  static constexpr int kWords = 1;  // f16 words stored: scale
  // Half a step; 1 % and an f16 step of 2^−24 for the scale's rounding.
  static constexpr RowBound kStoredBound{0.505 / kMax, 0x1p-24, double{kMax} * kF16Max};
  GroupScale scale;

  KVMARK_HD static KVMARK_INLINE SymmetricGroup fit(const float* x, int n) {
    // The order of magnitudes is that of their bits, and integers make the loop vector code.
    uint32_t largest = 0;
    for (int i = 0; i < n; ++i) {
      const uint32_t magnitude = bits_of(x[i]) & 0x7fffffffu;
      largest = magnitude > largest ? magnitude : largest;
    }
    return of(float_of(largest));
  }
  // Of values whose largest magnitude is given.
  KVMARK_HD static KVMARK_INLINE SymmetricGroup of(float largest) {
    return {group_scale(largest / kMax)};
  }
  KVMARK_HD KVMARK_INLINE int code(float x) const {
    return round_to_int(clamp_magnitude(x * scale.inverse, kMax));
  }
  KVMARK_HD KVMARK_INLINE void store(uint16_t* words) const { words[0] = scale.bits; }
  KVMARK_HD static KVMARK_INLINE Affine load(const uint16_t* words) {
    return {f16_to_f32(words[0]), 0.0f};
  }
  // Values that a saturated scale cannot reach.
  KVMARK_HD KVMARK_INLINE int clamped(const float* x, int n) const {
    int count = 0;
    if (scale.saturated) {
      for (int i = 0; i < n; ++i) count += abs_of(x[i]) > kMax * kF16Max;
    }
    return count;
  }
};

// Codes 0 … kMax above the minimum: x ≈ minimum + scale · code. The minimum is rounded down, so
// that no value lies below it, and the scale spans what is then left: a group of equal values is
// exact where the value is an f16 number (scale 0), and closer than its f16 rounding elsewhere.
template <int kMax>
struct AsymmetricGroup {
  static constexpr int kWords = 2;  // f16 words stored: scale, minimum
  // Half a step where the values span twice the largest; 1 % for the rounding of the two words.
  // Only a minimum below −65504 or a span beyond kMax · 65504 is clamped; neither is without a
  // value beyond 65504.
  static constexpr RowBound kStoredBound{1.01 / kMax, 0x1p-23, kF16Max};
  uint16_t minimum_bits;
  float minimum;
  GroupScale scale;

  KVMARK_HD static KVMARK_INLINE AsymmetricGroup fit(const float* x, int n) {
    float low = x[0], high = x[0];
    for (int i = 1; i < n; ++i) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    return of(low, high);
  }
  // Of values in [low, high]. −0 counts as 0: which of them is the lowest of a group may depend on
  // the order of comparisons.
  KVMARK_HD static KVMARK_INLINE AsymmetricGroup of(float low, float high) {
    const bool negative = low < 0;
    const StoredF16 number = f16_beside(abs_of(low), negative);
    const float minimum = negative ? -number.value : number.value;
    const float span = high > minimum ? high - minimum : 0.0f;
    return {static_cast<uint16_t>(number.bits | (negative ? 0x8000u : 0u)), minimum,
            group_scale(span / kMax)};
  }
  KVMARK_HD KVMARK_INLINE int code(float x) const {
    return round_to_int(clamp_positive((x - minimum) * scale.inverse, kMax));
  }
  KVMARK_HD KVMARK_INLINE void store(uint16_t* words) const {
    words[0] = scale.bits;
    words[1] = minimum_bits;
  }
  KVMARK_HD static KVMARK_INLINE Affine load(const uint16_t* words) {
    return {f16_to_f32(words[0]), f16_to_f32(words[1])};
  }
  // Values below any f16, and values that a saturated scale cannot reach.
  KVMARK_HD KVMARK_INLINE int clamped(const float* x, int n) const {
    int count = 0;
    for (int i = 0; i < n; ++i) count += x[i] < -kF16Max;
    if (scale.saturated) {
      for (int i = 0; i < n; ++i) count += x[i] - minimum > kMax * kF16Max;
    }
    return count;
  }
};

// A row of grouped codes, one token to a tile:
//
//   words of group 0, words of group 1, … (f16) | codes of group 0, codes of group 1, … | padding
//
// Scales stand first, so that they are aligned for any dim and at hand before the codes; the size
// is padded to an even number for the same reason. `Group` is one of the above, `Codes` says how
// the codes of a group lie in bytes (full groups take kGroup / kPerByte each).
template <typename Group, typename Codes, int kGroup>
struct GroupedRow {
  static_assert(kGroup == 32 || kGroup == 64 || kGroup == 128);
  static constexpr RowBound kStoredBound = Group::kStoredBound;

  static TileSpec tile(int dim) {
    return {.tokens = 1, .bytes = round_up_even(scale_bytes(dim) + Codes::bytes(dim)), .align = 2};
  }
  KVMARK_HD static KVMARK_INLINE int64_t scale_bytes(int dim) {
    return int64_t{2} * Group::kWords * groups_of(dim, kGroup);
  }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                            int /*slot*/) {
    auto* words = reinterpret_cast<uint16_t*>(tile);
    auto* codes = reinterpret_cast<uint8_t*>(tile + scale_bytes(dim));
    int clamped = 0;
    for (int first = 0; first < dim; first += kGroup) {
      const int n = dim - first < kGroup ? dim - first : kGroup;
      const Group group = Group::fit(row + first, n);
      group.store(words);
      Codes::pack(group, row + first, n, codes);
      clamped += group.clamped(row + first, n);
      words += Group::kWords;
      codes += kGroup / Codes::kPerByte;
    }
    return clamped;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int /*slot*/, int dim,
                                             float* row) {
    const auto* words = reinterpret_cast<const uint16_t*>(tile);
    const auto* codes = reinterpret_cast<const uint8_t*>(tile + scale_bytes(dim));
    for (int first = 0; first < dim; first += kGroup) {
      const int n = dim - first < kGroup ? dim - first : kGroup;
      Codes::unpack(codes, n, Group::load(words), row + first);
      words += Group::kWords;
      codes += kGroup / Codes::kPerByte;
    }
  }
};

// One side of a format of symmetric groups, sixteen rows to a tile:
//
//   scales (groups, 16 rows), f16 | codes of group 0, codes of group 1, …
//
// A vector holds the scale of sixteen rows as kernels need them, and every code of a row lies in
// bytes of its own. `Codes` says which: `Codes::bytes(dim)` of a tile, a multiple of 16, and
// put/get for the codes of one row's channels `first` … `first + n` − 1, which are one group.
template <int kMax, typename Codes, int kGroup>
struct GroupedTile {
  static_assert(kGroup == 32 || kGroup == 64 || kGroup == 128);
  using Group = SymmetricGroup<kMax>;

  static TileSpec tile(int dim) {
    const int64_t bytes = scales_bytes(dim) + Codes::bytes(dim);
    return {.tokens = kTileRows,
            .bytes = bytes,
            .align = static_cast<int>(std::min<int64_t>(bytes & -bytes, 64))};
  }
  // Of the tile's scales: where its codes begin.
  KVMARK_HD static KVMARK_INLINE int64_t scales_bytes(int dim) {
    return int64_t{2} * kTileRows * groups_of(dim, kGroup);
  }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile, int slot) {
    auto* scales = reinterpret_cast<uint16_t*>(tile) + slot;
    auto* payload = reinterpret_cast<uint8_t*>(tile + scales_bytes(dim));
    int clamped = 0;
    for (int first = 0; first < dim; first += kGroup) {
      const int n = dim - first < kGroup ? dim - first : kGroup;
      const Group group = Group::fit(row + first, n);
      int8_t codes[kGroup] = {};
      for (int i = 0; i < n; ++i) codes[i] = static_cast<int8_t>(group.code(row[first + i]));
      group.store(scales);
      Codes::put(codes, first, n, slot, payload);
      clamped += group.clamped(row + first, n);
      scales += kTileRows;
    }
    return clamped;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int slot, int dim, float* row) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile) + slot;
    const auto* payload = reinterpret_cast<const uint8_t*>(tile + scales_bytes(dim));
    for (int first = 0; first < dim; first += kGroup) {
      const int n = dim - first < kGroup ? dim - first : kGroup;
      int8_t codes[kGroup];
      Codes::get(payload, first, n, slot, codes);
      const float scale = Group::load(scales).scale;
      for (int i = 0; i < n; ++i) row[first + i] = scale * static_cast<float>(codes[i]);
      scales += kTileRows;
    }
  }
};

}  // namespace kvmark
