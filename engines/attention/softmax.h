// One step of the online softmax, compiled for each SIMD target.
#pragma once

#include <cstdint>

namespace kvmark {

struct SoftmaxKernels {
  // Takes the scores of the first `visible` ≥ 1 of kBlock positions into a state (m, l) whose
  // output is not yet divided by l. s: kBlock scores, −inf where there is no row; becomes p = e^(s
  // − m), exactly 0 for −inf and from `visible` on. Returns the factor that the output so far must
  // be multiplied with: 1 where m stayed.
  float (*block)(float* s, int visible, float* m, float* l) = nullptr;
  // x *= factor, n floats.
  void (*scale)(float* x, int n, float factor) = nullptr;
};

// For one of simd_targets().
SoftmaxKernels softmax_kernels(int64_t simd_target);

}  // namespace kvmark
