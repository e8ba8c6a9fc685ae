// fp8:e4m3: an 8-bit float for each value, without scales.
#pragma once

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

// Tile: one token, `dim` bytes in channel order, OCP E4M3. Range ±448 with 4 significant bits
// (relative error ≤ 2^−4), from 2^−6 down with a fixed step of 2^−9. Values beyond ±448 become ±448
// and are counted. No scales: that is what makes it comparable with caches that store fp8 as such.
struct Fp8E4m3 {
  static constexpr const char* kName = "fp8:e4m3";
  static constexpr double kTolerance = 1e-5;
  static constexpr RowBound kStoredBound{0x1.02p-4, 0x1p-10, kE4m3Max};

  static TileSpec tile(int dim) { return {.tokens = 1, .bytes = dim, .align = 1}; }
  static int64_t scale_bytes(int /*dim*/) { return 0; }

  KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                            int /*slot*/) {
    auto* codes = reinterpret_cast<uint8_t*>(tile);
    int clamped = 0;
    for (int d = 0; d < dim; ++d) {
      codes[d] = f32_to_e4m3(row[d]);
      clamped += abs_of(row[d]) > kE4m3Max;
    }
    return clamped;
  }
  KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int /*slot*/, int dim,
                                             float* row) {
    const auto* codes = reinterpret_cast<const uint8_t*>(tile);
    for (int d = 0; d < dim; ++d) row[d] = e4m3_to_f32(codes[d]);
  }
};

}  // namespace kvmark
