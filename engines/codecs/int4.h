// int4:g32, int4:g64, int4:g128 and their :asym forms: half a byte for each value, an f16 scale for
// each group of channels.
#pragma once

#include "engines/codecs/group.h"

namespace kvmark {

// Keys of int4: for each 8 channels (16 rows, 4) bytes, channel c low and channel c + 4 high, code
// + kBias. So masking and shifting a vector of bytes gives two vectors as those of int8 (see
// there).
struct Int4KeyCodes {
  static constexpr int kBias = 8;
  static int64_t bytes(int dim) { return int64_t{64} * ((dim + 7) / 8); }

  KVMARK_HD static KVMARK_INLINE void put(const int8_t* codes, int first, int n, int slot,
                                          uint8_t* payload) {
    uint8_t* quads = payload + int64_t{first} / 2 * kTileRows + slot * 4;
    for (int i = 0; i < n; i += 8) {
      for (int j = 0; j < 4; ++j) {
        const int low = codes[i + j] + kBias, high = codes[i + j + 4] + kBias;
        quads[i / 2 * kTileRows + j] = static_cast<uint8_t>(low | high << 4);
      }
    }
  }
  KVMARK_HD static KVMARK_INLINE void get(const uint8_t* payload, int first, int n, int slot,
                                          int8_t* codes) {
    const uint8_t* quads = payload + int64_t{first} / 2 * kTileRows + slot * 4;
    for (int i = 0; i < n; i += 8) {
      for (int j = 0; j < 4; ++j) {
        const int byte = quads[i / 2 * kTileRows + j];
        codes[i + j] = static_cast<int8_t>((byte & 0x0f) - kBias);
        codes[i + j + 4] = static_cast<int8_t>((byte >> 4) - kBias);
      }
    }
  }
};

// Values of int4: for each 32 channels (4 quads of rows, 16, 4 rows) bytes, channel c low and
// channel c + 16 high, nibbles in two's complement: in the upper half of a byte they are 16 · code
// without a correction. Of a last n < 32 channels the bytes are ⌈n/2⌉, channel c + ⌈n/2⌉ high.
struct Int4ValueCodes {
  static constexpr int kUnit = 32;  // channels
  static int64_t bytes(int dim) { return int64_t{kTileRows} * ((dim + 1) / 2); }

  KVMARK_HD static KVMARK_INLINE void put(const int8_t* codes, int first, int n, int slot,
                                          uint8_t* payload) {
    for (int i = 0; i < n; i += kUnit) {
      const int count = n - i < kUnit ? n - i : kUnit;
      const int width = (count + 1) / 2;
      uint8_t* at = payload + place(first + i, width, slot);
      for (int c = 0; c < width; ++c) {
        const int high = width + c < count ? codes[i + width + c] : 0;
        at[c * 4] = static_cast<uint8_t>((codes[i + c] & 0x0f) | high << 4);
      }
    }
  }
  KVMARK_HD static KVMARK_INLINE void get(const uint8_t* payload, int first, int n, int slot,
                                          int8_t* codes) {
    for (int i = 0; i < n; i += kUnit) {
      const int count = n - i < kUnit ? n - i : kUnit;
      const int width = (count + 1) / 2;
      const uint8_t* at = payload + place(first + i, width, slot);
      for (int c = 0; c < width; ++c) codes[i + c] = signed_nibble(at[c * 4]);
      for (int c = 0; c < count - width; ++c) codes[i + width + c] = signed_nibble(at[c * 4] >> 4);
    }
  }

 private:
  KVMARK_HD static KVMARK_INLINE int64_t place(int channel, int width, int slot) {
    return int64_t{kTileRows} * (channel / 2) + slot / 4 * 4 * width + slot % 4;
  }
  KVMARK_HD static KVMARK_INLINE int8_t signed_nibble(int bits) {
    return static_cast<int8_t>(((bits & 0x0f) ^ 8) - 8);
  }
};

// x ≈ scale · code, codes −7 … 7: −8 is left out, so that a value and its negative are equally far
// from their codes. 4.5 bits an element for groups of 32. A scale beyond 65504 (values beyond
// 458,528) saturates; the values it cannot reach are counted.
template <int kGroup>
struct Int4 {
  static constexpr const char* kName = kGroup == 32   ? "int4:g32"
                                       : kGroup == 64 ? "int4:g64"
                                                      : "int4:g128";
  using Keys = GroupedTile<7, Int4KeyCodes, kGroup>;
  using Values = GroupedTile<7, Int4ValueCodes, kGroup>;
  static constexpr RowBound kStoredBound = Keys::Group::kStoredBound;
  static int64_t scale_bytes(int dim) { return Keys::scales_bytes(dim) / kTileRows; }
};

// Nibbles of a group of n channels, unsigned: byte j holds channel j in its low and channel j +
// ⌈n/2⌉ in its high nibble. So masking and shifting a vector of bytes gives two vectors in channel
// order; with neighbours in a byte they would have to be interleaved. Where n is odd the last high
// nibble is 0.
struct NibbleCodes {
  static constexpr int kPerByte = 2;
  static int64_t bytes(int dim) { return (dim + 1) / 2; }

  template <typename Group>
  KVMARK_HD static KVMARK_INLINE void pack(const Group& group, const float* x, int n,
                                           uint8_t* codes) {
    const int half = (n + 1) / 2;
    for (int j = 0; j < half; ++j) codes[j] = static_cast<uint8_t>(group.code(x[j]));
    for (int j = 0; j < n - half; ++j) {
      codes[j] = static_cast<uint8_t>(codes[j] | group.code(x[half + j]) << 4);
    }
  }
  KVMARK_HD static KVMARK_INLINE void unpack(const uint8_t* codes, int n, Affine affine, float* x) {
    const int half = (n + 1) / 2;
    for (int j = 0; j < half; ++j) {
      x[j] = affine.offset + affine.scale * static_cast<float>(codes[j] & 0x0f);
    }
    for (int j = 0; j < n - half; ++j) {
      x[half + j] = affine.offset + affine.scale * static_cast<float>(codes[j] >> 4);
    }
  }
};

// x ≈ minimum + scale · code, codes 0 … 15: all sixteen levels lie within the group's values,
// wherever those are. 5 bits an element for groups of 32.
template <int kGroup>
struct Int4Asym : GroupedRow<AsymmetricGroup<15>, NibbleCodes, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int4:g32:asym"
                                       : kGroup == 64 ? "int4:g64:asym"
                                                      : "int4:g128:asym";
};

}  // namespace kvmark
