// One step of the online softmax, compiled for each SIMD target.
#pragma once

#include <cstdint>

#include "engines/codecs/codec.h"

namespace kvmark {

// The states of some queries while a split is worked on: largest scores so far, sums of e^(score −
// m) lane by lane, and outputs not yet divided by the sum. Nothing seen yet: m = −inf, the rest 0.
struct SoftmaxStates {
  float* m;  // (queries)
  float* l;  // (queries, kTileRows); unused lanes stay 0
  float* o;  // (queries, dim)
  int dim;
};

struct SoftmaxKernels {
  // Takes the scores of one block of kBlock positions into the states. s: (rows · group, kBlock)
  // scores, −inf where there is no row; becomes p = e^(s − m), exactly 0 for −inf and from
  // min(visible + row, kBlock) on. visible ≥ 1: positions that the first row sees.
  void (*block)(float* s, int rows, int group, int visible, const SoftmaxStates& states) = nullptr;
  // Divides the outputs of `queries` queries by their sums, where those are not 0, and leaves the
  // sums in l(query, 0).
  void (*finish)(int queries, const SoftmaxStates& states) = nullptr;
};

// For one of simd_targets().
SoftmaxKernels softmax_kernels(int64_t simd_target);

}  // namespace kvmark
