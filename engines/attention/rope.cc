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

void RopeTable::apply(int position, int heads, int dim, float* row) const {
  check(position >= 0 && position < max_len_, "rope at position {}: the table has {}", position,
        max_len_);
  check(dim >= rope_.dims, "rope over {} channels of a head of {}", rope_.dims, dim);
  const int pairs = rope_.dims / 2;
  const float* cosines = cos_sin_.data() + size_t(position) * 2 * pairs;
  const float* sines = cosines + pairs;
  // Channels of a pair: (i, i + pairs) for halves, (2i, 2i + 1) for adjacent.
  const int step = rope_.pairing == RopePairing::halves ? 1 : 2;
  const int distance = rope_.pairing == RopePairing::halves ? pairs : 1;
  for (int head = 0; head < heads; ++head) {
    float* x = row + int64_t{head} * dim;
    for (int i = 0; i < pairs; ++i) {
      const float a = x[i * step];
      const float b = x[i * step + distance];
      x[i * step] = a * cosines[i] - b * sines[i];
      x[i * step + distance] = a * sines[i] + b * cosines[i];
    }
  }
}

}  // namespace kvmark
