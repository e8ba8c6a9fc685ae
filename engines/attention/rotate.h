// The one pass over the heads of a new row before it is stored or asked: rotary embedding, scale
// and a look for values that are no numbers. Compiled for each SIMD target.
#pragma once

#include <cstdint>

#include "engines/core/tensor.h"

namespace kvmark {

// The rotation of one position. Pair i, channels (i, i + pairs) for halves and (2i, 2i + 1) for
// adjacent, turns by the angle of cosines[i] and sines[i]; channels from 2 · pairs on stay.
struct Rotation {
  const float* cosines = nullptr;
  const float* sines = nullptr;
  int pairs = 0;  // 0: nothing turns
  RopePairing pairing = RopePairing::adjacent;
};

// out = rotate(x) · scale for `heads` head rows side by side: (heads, dim), 2 · pairs ≤ dim; x and
// out may not overlap. Returns whether all of `out` is finite. The bits of a head depend on neither
// `heads` nor its place, but on whether the SIMD target has fused operations.
using RotateHeads = bool (*)(const float* x, int heads, int dim, const Rotation& rotation,
                             float scale, float* out);

// For one of simd_targets().
RotateHeads rotate_heads(int64_t simd_target);

}  // namespace kvmark
