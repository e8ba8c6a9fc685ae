// fp8:e4m3: an 8-bit float for each value, without scales.
#pragma once

#include "engines/codecs/dense.h"

namespace kvmark {

struct E4m3Number {
  using Word = uint8_t;
  static constexpr float kMax = kE4m3Max;
  KVMARK_HD static KVMARK_INLINE Word narrow(float x) { return f32_to_e4m3(x); }
  KVMARK_HD static KVMARK_INLINE float widen(Word word) { return e4m3_to_f32(word); }
};

// OCP E4M3. Range ±448 with 4 significant bits (relative error ≤ 2^−4), from 2^−6 down with a fixed
// step of 2^−9. Values beyond ±448 become ±448 and are counted. No scales: that is what makes it
// comparable with caches that store fp8 as such.
struct Fp8E4m3 : DenseFormat<E4m3Number> {
  static constexpr const char* kName = "fp8:e4m3";
  static constexpr RowBound kStoredBound{0x1.02p-4, 0x1p-10, kE4m3Max};
};

}  // namespace kvmark
