// Queries as the integer kernels take them (ints-inl.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvmark {

// A group of channels of a quantized query, in words of four bytes:
//
//   scale (float) | correction (int32) | kQuadWords words for each quad of channels
//
// q ≈ scale · code. The correction is −bias · Σ code over the group, for the bias of the codes in
// the tile. Quads are filled with zeros to sixteen channels, so that bytes of a tile which belong
// to no channel don't count.
template <int kQuadWords>
struct PreparedGroup {
  static constexpr int kFirstQuad = 2;
  static constexpr int quads(int channels) { return (channels + 15) / 16 * 4; }
  static constexpr int words(int channels) { return kFirstQuad + kQuadWords * quads(channels); }
  // Of a query of `dim` channels in groups of `group`.
  static constexpr int64_t words(int dim, int group) {
    const int rest = dim % group;
    return int64_t{dim / group} * words(group) + (rest ? words(rest) : 0);
  }
  // prepare(first channel, channels, words) for each group of a query.
  template <typename Prepare>
  static void for_each(int dim, int group, float* prepared, const Prepare& prepare) {
    for (int first = 0; first < dim; first += group) {
      const int n = std::min(group, dim - first);
      prepare(first, n, prepared);
      prepared += words(n);
    }
  }
};

// Nothing smaller is told from zero where a step is fitted, of queries or of weights: its
// reciprocal is still finite.
inline constexpr float kLeastMagnitude = 1e-30f;

}  // namespace kvmark
