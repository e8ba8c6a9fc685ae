// Test support: numbers for the backend and its kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/core/backend.h"
#include "engines/core/bits.h"

namespace kvmark {

// A value that looks random, in (−1, 1).
inline float wave(int64_t i) {
  return static_cast<float>(std::sin(0.7 * static_cast<double>(i) + 1.0));
}

// As a weight of `type` keeps it.
inline float rounded(float x, WeightType type) {
  switch (type) {
    case WeightType::f16:
      return f16_to_f32(f32_to_f16(x));
    case WeightType::bf16:
      return bf16_to_f32(f32_to_bf16(x));
    default:
      return x;
  }
}

}  // namespace kvmark
