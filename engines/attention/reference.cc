// The yardsticks, in double and as plain as can be; they share nothing with the kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/core/check.h"

namespace kvmark {

void attend_reference(const double* q, int k_dim, const float* k, int k_stride, const float* v,
                      int v_stride, int v_dim, int visible, double* out) {
  std::fill(out, out + v_dim, 0.0);
  if (visible <= 0) return;
  std::vector<double> scores(visible);
  double largest = -std::numeric_limits<double>::infinity();
  for (int row = 0; row < visible; ++row) {
    double dot = 0;
    for (int d = 0; d < k_dim; ++d) dot += q[d] * double{k[int64_t{row} * k_stride + d]};
    scores[row] = dot / std::sqrt(double(k_dim));
    largest = std::max(largest, scores[row]);
  }
  double total = 0;
  for (int row = 0; row < visible; ++row) {
    const double weight = std::exp(scores[row] - largest);
    total += weight;
    for (int d = 0; d < v_dim; ++d) out[d] += weight * double{v[int64_t{row} * v_stride + d]};
  }
  for (int d = 0; d < v_dim; ++d) out[d] /= total;
}

void rope_reference(const Rope& rope, int position, int dim, double* row) {
  check(dim >= rope.dims, "rope over {} channels of a head of {}", rope.dims, dim);
  for (int i = 0; i < rope.dims / 2; ++i) {
    const double angle = position * std::pow(rope.theta, -2.0 * i / rope.dims);
    const bool halves = rope.pairing == RopePairing::halves;
    double& first = row[halves ? i : 2 * i];
    double& second = row[halves ? i + rope.dims / 2 : 2 * i + 1];
    const double x = first, y = second;
    first = x * std::cos(angle) - y * std::sin(angle);
    second = x * std::sin(angle) + y * std::cos(angle);
  }
}

}  // namespace kvmark
