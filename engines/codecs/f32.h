// f32: the row as it is. The yardstick of every other format.
#pragma once

#include <cstring>

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

// Tile: one token, `dim` floats in channel order. Range: all finite floats; nothing is ever
// clamped.
struct F32 {
  static constexpr const char* kName = "f32";
  static constexpr double kTolerance = 1e-5;
  static constexpr RowBound kStoredBound{1e-5, 0};

  static TileSpec tile(int dim) { return {.tokens = 1, .bytes = int64_t{dim} * 4, .align = 4}; }
  static int64_t scale_bytes(int /*dim*/) { return 0; }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                            int /*slot*/) {
    std::memcpy(tile, row, sizeof(float) * dim);
    return 0;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int /*slot*/, int dim,
                                             float* row) {
    std::memcpy(row, tile, sizeof(float) * dim);
  }

  // The rows of consecutive tiles can be read where they are.
  static const float* rows_in_place(const std::byte* tiles) {
    return reinterpret_cast<const float*>(tiles);
  }
};

}  // namespace kvmark
