// int4:g32, int4:g64, int4:g128 and their :asym forms: half a byte for each value, an f16 scale for
// each group of channels.
#pragma once

#include "engines/codecs/group.h"

namespace kvmark {

// Nibbles of a group of n channels: byte j holds channel j in its low and channel j + ⌈n/2⌉ in its
// high nibble. So masking and shifting a vector of bytes gives two vectors in channel order; with
// neighbours in a byte they would have to be interleaved. Where n is odd the last high nibble is 0.
// A nibble is code + kBias.
template <int kBias>
struct NibbleCodes {
  static constexpr int kPerByte = 2;
  static int64_t bytes(int dim) { return (dim + 1) / 2; }

  template <typename Group>
  KVMARK_HD static KVMARK_INLINE void pack(const Group& group, const float* x, int n,
                                           uint8_t* codes) {
    const int half = (n + 1) / 2;
    for (int j = 0; j < half; ++j) codes[j] = static_cast<uint8_t>(group.code(x[j]) + kBias);
    for (int j = 0; j < n - half; ++j) {
      codes[j] = static_cast<uint8_t>(codes[j] | (group.code(x[half + j]) + kBias) << 4);
    }
  }
  // offset − scale · bias is exact where either is 0, and one of them always is.
  KVMARK_HD static KVMARK_INLINE void unpack(const uint8_t* codes, int n, Affine affine, float* x) {
    const int half = (n + 1) / 2;
    const float offset = affine.offset - affine.scale * kBias;
    for (int j = 0; j < half; ++j) {
      x[j] = offset + affine.scale * static_cast<float>(codes[j] & 0x0f);
    }
    for (int j = 0; j < n - half; ++j) {
      x[half + j] = offset + affine.scale * static_cast<float>(codes[j] >> 4);
    }
  }
};

// x ≈ scale · code, codes −7 … 7 stored with a bias of 8: −8 is left out, so that a value and its
// negative are equally far from their codes. 4.5 bits an element for groups of 32. A scale beyond
// 65504 (values beyond 458,528) saturates; the values it cannot reach are counted.
template <int kGroup>
struct Int4 : GroupedRow<SymmetricGroup<7>, NibbleCodes<8>, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int4:g32"
                                       : kGroup == 64 ? "int4:g64"
                                                      : "int4:g128";
};

// x ≈ minimum + scale · code, codes 0 … 15: all sixteen levels lie within the group's values,
// wherever those are. 5 bits an element for groups of 32.
template <int kGroup>
struct Int4Asym : GroupedRow<AsymmetricGroup<15>, NibbleCodes<0>, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int4:g32:asym"
                                       : kGroup == 64 ? "int4:g64:asym"
                                                      : "int4:g128:asym";
};

}  // namespace kvmark
