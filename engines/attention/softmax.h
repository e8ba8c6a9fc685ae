// One step of the online softmax, compiled for each SIMD target.
#pragma once

#include <cstdint>

#include "engines/codecs/codec.h"

namespace kvmark {

// The states of some queries while a split is worked on: references near the largest scores so far,
// sums of e^(score − m) lane by lane, and outputs not yet divided by the sum. Nothing seen yet: m =
// −inf, the rest 0.
struct SoftmaxStates {
  float* m;  // (queries)
  float* l;  // (queries, kTileRows); unused lanes stay 0
  float* o;  // (queries, dim)
  int dim;
};

// Partial attention over some rows: m near the largest score, l = Σ e^(score − m), o = Σ e^(score −
// m) · v / l. Nothing seen yet: m = −inf, l = 0, o = 0.
struct AttentionState {
  float m;
  float l;
};

// s: (queries, kBlock), the scores of one block of positions, −inf where there is none.
struct SoftmaxKernels {
  // Whether a query's reference must rise before block(): it does when a score exceeds it by 8, so
  // that it is raised a few times only and no e^(score − m) is above 3,000; values beyond 1e32 may
  // overflow an output for that. (A threshold of that kind is in FlashAttention-4.)
  bool (*exceeds)(const float* s, int queries, const SoftmaxStates& states) = nullptr;
  // Raises the references of the queries for which that is so to their largest score; sums and
  // outputs, which must hold all blocks before, follow.
  void (*raise)(const float* s, int queries, const SoftmaxStates& states) = nullptr;
  // Adds one block to the sums. s becomes p = e^(s − m), exactly 0 for −inf.
  void (*block)(float* s, int queries, const SoftmaxStates& states) = nullptr;
  // Divides the outputs of the queries by their sums, where those are not 0, and leaves the sums in
  // l(query, 0).
  void (*finish)(int queries, const SoftmaxStates& states) = nullptr;
  // Merges state b with output o_b into state a with output o_a (dim floats each). Merging with an
  // empty state changes nothing; two empty states stay empty.
  void (*merge)(AttentionState& a, float* o_a, const AttentionState& b, const float* o_b,
                int dim) = nullptr;
};

// For one of simd_targets().
SoftmaxKernels softmax_kernels(int64_t simd_target);

}  // namespace kvmark
