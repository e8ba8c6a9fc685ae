// bf16: the upper half of each f32, rounded.
#pragma once

#include "engines/codecs/dense.h"

namespace kvmark {

struct Bf16Number {
  using Word = uint16_t;
  static constexpr float kMax = kBf16Max;
  KVMARK_HD static KVMARK_INLINE Word narrow(float x) {
    return f32_to_bf16(clamp_magnitude(x, kMax));
  }
  KVMARK_HD static KVMARK_INLINE float widen(Word word) { return bf16_to_f32(word); }
};

// The range of f32 with 8 significant bits (relative error ≤ 2^−8): no activation overflows it, at
// eight times the rounding error of f16. The few f32 numbers that would round to infinity are
// clamped to the largest value and counted; that value is within their bound.
struct Bf16 : DenseFormat<Bf16Number> {
  static constexpr const char* kName = "bf16";
  static constexpr RowBound kStoredBound{0x1.02p-8, 0};
};

}  // namespace kvmark
