// f32: the numbers as they are. The yardstick of every other format.
#pragma once

#include "engines/codecs/dense.h"

namespace kvmark {

struct F32Number {
  using Word = float;
  static constexpr float kMax = 0x1.fffffep127f;
  KVMARK_HD static KVMARK_INLINE Word narrow(float x) { return x; }
  KVMARK_HD static KVMARK_INLINE float widen(Word word) { return word; }
};

// Range: all finite floats; nothing is ever clamped.
struct F32 : DenseFormat<F32Number> {
  static constexpr const char* kName = "f32";
  static constexpr RowBound kStoredBound{1e-5, 0};
};

}  // namespace kvmark
