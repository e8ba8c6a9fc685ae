// bf16: the upper half of each f32, rounded.
#pragma once

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

// Tile: one token, `dim` values in channel order. The range of f32 with 8 significant bits
// (relative error ≤ 2^−8): no activation overflows it, at eight times the rounding error of f16.
// The few f32 numbers that would round to infinity are clamped to the largest value and counted;
// that value is within their bound.
struct Bf16 {
  static constexpr const char* kName = "bf16";
  static constexpr double kTolerance = 1e-5;
  static constexpr RowBound kStoredBound{0x1.02p-8, 0};

  static TileSpec tile(int dim) { return {.tokens = 1, .bytes = int64_t{dim} * 2, .align = 2}; }
  static int64_t scale_bytes(int /*dim*/) { return 0; }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                            int /*slot*/) {
    auto* codes = reinterpret_cast<uint16_t*>(tile);
    int clamped = 0;
    for (int d = 0; d < dim; ++d) {
      codes[d] = f32_to_bf16(clamp_magnitude(row[d], kBf16Max));
      clamped += abs_of(row[d]) > kBf16Max;
    }
    return clamped;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int /*slot*/, int dim,
                                             float* row) {
    const auto* codes = reinterpret_cast<const uint16_t*>(tile);
    for (int d = 0; d < dim; ++d) row[d] = bf16_to_f32(codes[d]);
  }
};

}  // namespace kvmark
