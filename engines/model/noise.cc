#include "engines/model/noise.h"

#include <algorithm>
#include <cmath>

namespace kvmark {

ChannelScales channel_scales(uint64_t stream, int dim, const Rope* rope) {
  // Squares, so that the queries' counterweight is exact.
  constexpr double kRoots[] = {1.75, 2.0, 2.25, 2.5, 2.75};  // ×3.06 … ×7.56
  ChannelScales scales{std::vector<double>(dim, 1.0), std::vector<double>(dim, 1.0)};
  const int pairs = rope ? rope->dims / 2 : dim / 2;
  const bool halves = rope && rope->pairing == RopePairing::halves;
  const int outliers = pairs == 0 ? 0 : std::max(1, dim / 64);
  for (int i = 0; i < outliers; ++i) {
    const uint64_t hash = hash_at(stream, i);
    const int pair = static_cast<int>((hash >> 8) % pairs);
    const double root = kRoots[hash % 5];
    for (int channel : {halves ? pair : 2 * pair, halves ? pair + pairs : 2 * pair + 1}) {
      scales.key[channel] = root * root;
      // A trained query does not add to a large key channel in full: the product grows by root.
      scales.query[channel] = 1.0 / root;
    }
  }
  double variance = 0;
  for (int d = 0; d < dim; ++d) {
    const double product = scales.key[d] * scales.query[d];
    variance += product * product / dim;
  }
  const double weight = kScoreDeviation / std::sqrt(variance);
  for (double& query : scales.query) query *= weight;
  return scales;
}

}  // namespace kvmark
