// int8:g32, int8:g64, int8:g128 and their :asym forms: a byte for each value, an f16 scale for each
// group of channels.
#pragma once

#include "engines/codecs/group.h"

namespace kvmark {

// One byte for each channel, in channel order; Byte is int8_t or uint8_t.
template <typename Byte>
struct ByteCodes {
  static constexpr int kPerByte = 1;
  static int64_t bytes(int dim) { return dim; }

  template <typename Group>
  KVMARK_HD static KVMARK_INLINE void pack(const Group& group, const float* x, int n,
                                           uint8_t* codes) {
    for (int i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(group.code(x[i]));
  }
  KVMARK_HD static KVMARK_INLINE void unpack(const uint8_t* codes, int n, Affine affine, float* x) {
    for (int i = 0; i < n; ++i) {
      x[i] = affine.offset + affine.scale * static_cast<float>(static_cast<Byte>(codes[i]));
    }
  }
};

// x ≈ scale · code, codes −127 … 127 in two's complement: −128 is left out, so that a value and its
// negative are equally far from their codes. 8.5 bits an element for groups of 32. A scale beyond
// 65504 (values beyond 8.3e6) saturates; the values it cannot reach are counted.
template <int kGroup>
struct Int8 : GroupedRow<SymmetricGroup<127>, ByteCodes<int8_t>, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int8:g32"
                                       : kGroup == 64 ? "int8:g64"
                                                      : "int8:g128";
};

// x ≈ minimum + scale · code, codes 0 … 255 unsigned: where the channels of a group lie to one side
// of zero, as those of keys often do, no code is wasted on the other. 9 bits an element for groups
// of 32.
template <int kGroup>
struct Int8Asym : GroupedRow<AsymmetricGroup<255>, ByteCodes<uint8_t>, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int8:g32:asym"
                                       : kGroup == 64 ? "int8:g64:asym"
                                                      : "int8:g128:asym";
};

}  // namespace kvmark
