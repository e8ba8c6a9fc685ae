// f16: IEEE binary16 for each value.
#pragma once

#include "engines/codecs/dense.h"

namespace kvmark {

struct F16Number {
  using Word = uint16_t;
  static constexpr float kMax = kF16Max;
  KVMARK_HD static KVMARK_INLINE Word narrow(float x) {
    return f32_to_f16(clamp_magnitude(x, kMax));
  }
  KVMARK_HD static KVMARK_INLINE float widen(Word word) { return f16_to_f32(word); }
};

// Range ±65504 with 11 significant bits (relative error ≤ 2^−11), from 2^−14 down with a fixed step
// of 2^−24. What lies beyond the range is clamped to its end and counted: an infinity in the cache
// would make every later output NaN.
struct F16 : DenseFormat<F16Number> {
  static constexpr const char* kName = "f16";
  static constexpr RowBound kStoredBound{0x1.02p-11, 0x1p-24, kF16Max};
};

}  // namespace kvmark
