// f16: IEEE binary16 for each value.
#pragma once

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

// Tile: one token, `dim` halves in channel order. Range ±65504 with 11 significant bits (relative
// error ≤ 2^−11), from 2^−14 down with a fixed step of 2^−24. What lies beyond the range is clamped
// to its end and counted: an infinity in the cache would make every later output NaN.
struct F16 {
  static constexpr const char* kName = "f16";
  static constexpr double kTolerance = 1e-5;
  static constexpr RowBound kStoredBound{0x1.02p-11, 0x1p-24, kF16Max};

  static TileSpec tile(int dim) { return {.tokens = 1, .bytes = int64_t{dim} * 2, .align = 2}; }
  static int64_t scale_bytes(int /*dim*/) { return 0; }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                            int /*slot*/) {
    auto* halves = reinterpret_cast<uint16_t*>(tile);
    int clamped = 0;
    for (int d = 0; d < dim; ++d) {
      halves[d] = f32_to_f16(clamp_magnitude(row[d], kF16Max));
      clamped += abs_of(row[d]) > kF16Max;
    }
    return clamped;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int /*slot*/, int dim,
                                             float* row) {
    const auto* halves = reinterpret_cast<const uint16_t*>(tile);
    for (int d = 0; d < dim; ++d) row[d] = f16_to_f32(halves[d]);
  }
};

}  // namespace kvmark
