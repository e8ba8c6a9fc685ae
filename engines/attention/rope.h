// Rotary embedding of engine rows: f32, with angles computed once in double.
#pragma once

#include <vector>

#include "engines/core/tensor.h"

namespace kvmark {

// Cosines and sines of every angle up to a length. The angles are computed in double, so that far
// positions lose nothing; the rotation itself is f32, and the same bits for a row however it comes.
class RopeTable {
 public:
  // Positions [0, max_len). Throws LogicError unless rope.dims is even and positive.
  RopeTable(const Rope& rope, int max_len);

  // Rotates the first `dims` channels of each of `heads` head rows that lie side by side at `row`:
  // (heads, dim). Positions outside the table or dim < dims throw LogicError.
  void apply(int position, int heads, int dim, float* row) const;

 private:
  Rope rope_;
  int max_len_;
  std::vector<float> cos_sin_;  // (max_len, 2, dims / 2): cosines, then sines
};

}  // namespace kvmark
