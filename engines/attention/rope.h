// The angles of rotary embedding, computed once in double.
#pragma once

#include <vector>

#include "engines/attention/rotate.h"
#include "engines/core/tensor.h"

namespace kvmark {

// Cosines and sines of every angle up to a length, in f32. The angles are computed in double, so
// that far positions lose nothing; RotateHeads turns rows by them.
class RopeTable {
 public:
  // Positions [0, max_len). Throws LogicError unless rope.dims is even and positive.
  RopeTable(const Rope& rope, int max_len);

  // Throws LogicError for a position outside the table. Valid as long as the table.
  Rotation at(int position) const;

 private:
  Rope rope_;
  int max_len_;
  std::vector<float> cos_sin_;  // (max_len, 2, dims / 2): cosines, then sines
};

}  // namespace kvmark
