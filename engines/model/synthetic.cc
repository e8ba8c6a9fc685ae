#include "engines/model/synthetic.h"

#include <algorithm>

#include "engines/core/check.h"
#include "engines/model/noise.h"

namespace kvmark {
namespace {

// One number for each list; part of the definition of the rows.
enum Stream : uint64_t { kChannels, kQuery, kKey, kValue };

// A key is the sum of uniform numbers at its own position and at the three before it: near normal,
// with the deviation of bell_of, and correlated 3/4, 1/2 and 1/4 with its neighbours.
constexpr int kMemory = 4;
constexpr int kLanes = 4;  // channels that share a hash, 16 bits each

// Centred sums of channels [kLanes · group, …) of the row at `position`; `groups` hashes a row.
void key_sums(uint64_t stream, int position, int groups, int group, int32_t sums[kLanes]) {
  constexpr uint64_t kMask = 0x0000ffff0000ffffull;
  uint64_t even = 0, odd = 0;
  for (int back = 0; back < kMemory; ++back) {
    const uint64_t row = static_cast<uint64_t>(position + kMemory - back);
    const uint64_t hash = hash_at(stream, row * groups + group);
    even += hash & kMask;
    odd += (hash >> 16) & kMask;
  }
  constexpr int32_t kMean = kMemory * 65535 / 2;
  sums[0] = static_cast<int32_t>(even & 0xffffffffu) - kMean;
  sums[1] = static_cast<int32_t>(odd & 0xffffffffu) - kMean;
  sums[2] = static_cast<int32_t>(even >> 32) - kMean;
  sums[3] = static_cast<int32_t>(odd >> 32) - kMean;
}

void fill_keys(uint64_t stream, int position, const std::vector<float>& scales, float* row) {
  const int n = static_cast<int>(scales.size()), groups = (n + kLanes - 1) / kLanes;
  for (int group = 0; group < groups; ++group) {
    int32_t sums[kLanes];
    key_sums(stream, position, groups, group, sums);
    const int first = group * kLanes, lanes = std::min(kLanes, n - first);
    for (int i = 0; i < lanes; ++i)
      row[first + i] = static_cast<float>(sums[i]) * scales[first + i];
  }
}

}  // namespace

SyntheticAttention::SyntheticAttention(const KvSpec& spec, uint64_t seed)
    : spec_(spec), seed_(seed) {
  const Rope* rope = spec.rope ? &*spec.rope : nullptr;
  const int group = spec.heads / spec.kv_heads;
  layers_.resize(spec.layers);
  for (int layer = 0; layer < spec.layers; ++layer) {
    LayerScales& scales = layers_[layer];
    for (int head = 0; head < spec.kv_heads; ++head) {
      const uint64_t stream =
          stream_of({seed, kChannels, static_cast<uint64_t>(layer), static_cast<uint64_t>(head)});
      const ChannelScales channels = channel_scales(stream, spec.k_dim, rope);
      for (const double scale : channels.key) {
        scales.key.push_back(static_cast<float>(scale / kBellDeviation));
      }
      for (int i = 0; i < group; ++i) {
        scales.query.insert(scales.query.end(), channels.query.begin(), channels.query.end());
      }
    }
  }
}

void SyntheticAttention::fill(int layer, int index, int first, int rows, Tensor q, Tensor k,
                              Tensor v) const {
  check(layer >= 0 && layer < spec_.layers, "synthetic rows of layer {} of {}", layer,
        spec_.layers);
  check(index >= 0 && first >= 0 && k.rows == rows && v.rows == rows && (!q.data || q.rows == rows),
        "synthetic rows [{}, {}) of sequence {} into {} rows of k and {} of v", first, first + rows,
        index, k.rows, v.rows);
  const auto stream = [&](Stream which) {
    return stream_of({seed_, which, static_cast<uint64_t>(layer), static_cast<uint64_t>(index)});
  };
  const LayerScales& scales = layers_[layer];
  for (int r = 0; r < rows; ++r) {
    const uint64_t position = static_cast<uint64_t>(first + r);
    fill_keys(stream(kKey), first + r, scales.key, k.row(r));
    fill_bell(stream(kValue), position * v.cols, v.cols, 1.0, v.row(r));
    if (!q.data) continue;
    fill_bell(stream(kQuery), position * q.cols, q.cols, 1.0, q.row(r));
    for (int i = 0; i < q.cols; ++i) q.row(r)[i] *= scales.query[i];
  }
}

}  // namespace kvmark
