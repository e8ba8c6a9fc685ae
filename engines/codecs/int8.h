// int8:g32, int8:g64, int8:g128 and their :asym forms: a byte for each value, an f16 scale for each
// group of channels.
#pragma once

#include "engines/codecs/group.h"

namespace kvmark {

// Keys of int8: (⌈dim/4⌉, 16 rows, 4 channels) bytes, code + kBias. Four channels are what one
// integer dot product sums, so a vector of 64 bytes holds a step of sixteen rows' scores, and no
// sum over lanes is needed. Unsigned, since such products multiply an unsigned by a signed byte and
// it is the query that must be signed.
struct Int8KeyCodes {
  static constexpr int kBias = 128;
  static int64_t bytes(int dim) { return int64_t{64} * ((dim + 3) / 4); }

  KVMARK_HD static KVMARK_INLINE void put(const int8_t* codes, int first, int n, int slot,
                                          uint8_t* payload) {
    uint8_t* quads = payload + int64_t{first} * kTileRows + slot * 4;
    for (int i = 0; i < n; i += 4) {
      for (int j = 0; j < 4; ++j) {
        quads[i * kTileRows + j] = static_cast<uint8_t>(codes[i + j] + kBias);
      }
    }
  }
  KVMARK_HD static KVMARK_INLINE void get(const uint8_t* payload, int first, int n, int slot,
                                          int8_t* codes) {
    const uint8_t* quads = payload + int64_t{first} * kTileRows + slot * 4;
    for (int i = 0; i < n; i += 4) {
      for (int j = 0; j < 4; ++j) {
        codes[i + j] = static_cast<int8_t>(quads[i * kTileRows + j] - kBias);
      }
    }
  }
};

// Values of int8: for each 16 channels (4 quads of rows, 16 channels, 4 rows) bytes, codes in two's
// complement; where the last channels are fewer, so are they here. Here a dot product sums over
// four rows, for sixteen channels at once; the probabilities are the unsigned factor.
struct Int8ValueCodes {
  static constexpr int kUnit = 16;  // channels
  static int64_t bytes(int dim) { return int64_t{kTileRows} * dim; }

  KVMARK_HD static KVMARK_INLINE void put(const int8_t* codes, int first, int n, int slot,
                                          uint8_t* payload) {
    for (int i = 0; i < n; i += kUnit) {
      const int width = n - i < kUnit ? n - i : kUnit;
      uint8_t* at = payload + place(first + i, width, slot);
      for (int c = 0; c < width; ++c) at[c * 4] = static_cast<uint8_t>(codes[i + c]);
    }
  }
  KVMARK_HD static KVMARK_INLINE void get(const uint8_t* payload, int first, int n, int slot,
                                          int8_t* codes) {
    for (int i = 0; i < n; i += kUnit) {
      const int width = n - i < kUnit ? n - i : kUnit;
      const uint8_t* at = payload + place(first + i, width, slot);
      for (int c = 0; c < width; ++c) codes[i + c] = static_cast<int8_t>(at[c * 4]);
    }
  }

 private:
  KVMARK_HD static KVMARK_INLINE int64_t place(int channel, int width, int slot) {
    return int64_t{kTileRows} * channel + slot / 4 * 4 * width + slot % 4;
  }
};

// x ≈ scale · code, codes −127 … 127: −128 is left out, so that a value and its negative are
// equally far from their codes. 8.5 bits an element for groups of 32. A scale beyond 65504 (values
// beyond 8.3e6) saturates; the values it cannot reach are counted.
template <int kGroup>
struct Int8 {
  static constexpr const char* kName = kGroup == 32   ? "int8:g32"
                                       : kGroup == 64 ? "int8:g64"
                                                      : "int8:g128";
  using Keys = GroupedTile<127, Int8KeyCodes, kGroup>;
  using Values = GroupedTile<127, Int8ValueCodes, kGroup>;
  static constexpr RowBound kStoredBound = Keys::Group::kStoredBound;
  static int64_t scale_bytes(int dim) { return Keys::scales_bytes(dim) / kTileRows; }
};

// One byte for each channel, unsigned, in channel order.
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
      x[i] = affine.offset + affine.scale * static_cast<float>(codes[i]);
    }
  }
};

// x ≈ minimum + scale · code, codes 0 … 255 unsigned: where the channels of a group lie to one side
// of zero, as those of keys often do, no code is wasted on the other. 9 bits an element for groups
// of 32.
template <int kGroup>
struct Int8Asym : GroupedRow<AsymmetricGroup<255>, ByteCodes, kGroup> {
  static constexpr const char* kName = kGroup == 32   ? "int8:g32:asym"
                                       : kGroup == 64 ? "int8:g64:asym"
                                                      : "int8:g128:asym";
};

}  // namespace kvmark
