#include "engines/attention/rope.h"

#include <cmath>

#include "engines/core/check.h"

namespace kvmark {

RopeTable::RopeTable(const Rope& rope, int max_len) : rope_(rope), max_len_(max_len) {
  check(rope.dims > 0 && rope.dims % 2 == 0, "rope over {} channels: expected an even number > 0",
        rope.dims);
  check(rope.theta > 0 && max_len >= 0, "rope with theta {} over {} positions", rope.theta,
        max_len);
  const int pairs = rope.dims / 2;
  cos_sin_.resize(size_t(max_len) * 2 * pairs);
  for (int pair = 0; pair < pairs; ++pair) {
    const double frequency = std::pow(rope.theta, -2.0 * pair / rope.dims);
    for (int position = 0; position < max_len; ++position) {
      float* entry = cos_sin_.data() + size_t(position) * 2 * pairs + pair;
      entry[0] = static_cast<float>(std::cos(position * frequency));
      entry[pairs] = static_cast<float>(std::sin(position * frequency));
    }
  }
}

Rotation RopeTable::at(int position) const {
  check(position >= 0 && position < max_len_, "rope at position {}: the table has {}", position,
        max_len_);
  const int pairs = rope_.dims / 2;
  const float* cosines = cos_sin_.data() + size_t(position) * 2 * pairs;
  return {cosines, cosines + pairs, pairs, rope_.pairing};
}

}  // namespace kvmark
