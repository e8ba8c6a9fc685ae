#include "engines/model/synthetic.h"

#include "engines/core/check.h"
#include "engines/model/noise.h"

namespace kvmark {
namespace {

// One number for each list; part of the definition of the rows.
enum Stream : uint64_t { kChannels, kQuery, kKey, kValue };

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
    fill_walk(stream(kKey), first + r, k.cols, scales.key.data(), k.row(r));
    fill_bell(stream(kValue), position * v.cols, v.cols, 1.0, v.row(r));
    if (!q.data) continue;
    fill_bell(stream(kQuery), position * q.cols, q.cols, 1.0, q.row(r));
    for (int i = 0; i < q.cols; ++i) q.row(r)[i] *= scales.query[i];
  }
}

}  // namespace kvmark
