// Views and shapes that every folder shares.
#pragma once

#include <cstdint>

namespace kvmark {

// A dense row-major float matrix in the memory of the device that works on it; it owns nothing.
// Activations are always f32; only weights and cached rows have other formats.
struct Tensor {
  float* data = nullptr;
  int rows = 0;
  int cols = 0;

  float* row(int r) const { return data + static_cast<int64_t>(r) * cols; }
  // Rows [first, first + count).
  Tensor slice(int first, int count) const { return {row(first), count, cols}; }
  int64_t size() const { return static_cast<int64_t>(rows) * cols; }
};

// Rotary embedding. `adjacent` rotates the pairs (2i, 2i+1), `halves` the pairs (i, i + dims/2).
// Angle of pair i at position p: p · theta^(−2i/dims). (Su et al., "RoFormer", 2021; the two
// pairings are those of the original LLaMA weights in GGUF files and of GPT-NeoX/Hugging Face.)
enum class RopePairing { adjacent, halves };
struct Rope {
  double theta = 10000.0;
  int dims = 0;  // rotated channels of a head, the first `dims`; even
  RopePairing pairing = RopePairing::adjacent;
};

// Which of the fed rows want an attention output: every row, the last of each piece, or none
// (filling a context).
enum class Outputs { all, last, none };

}  // namespace kvmark
