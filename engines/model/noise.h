// Reproducible pseudo-random numbers as a function of (stream, index): the same bits on every
// machine, compiler and thread count, because everything is integer arithmetic but for one rounding
// multiply.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "engines/core/tensor.h"

namespace kvmark {

// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that mixes all bits.
inline constexpr uint64_t kMixFirst = 0xbf58476d1ce4e5b9ull, kMixSecond = 0x94d049bb133111ebull;
constexpr uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * kMixFirst;
  z = (z ^ (z >> 27)) * kMixSecond;
  return z ^ (z >> 31);
}

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

// The start of a stream of its own for each list of numbers.
constexpr uint64_t stream_of(std::initializer_list<uint64_t> parts) {
  uint64_t stream = 0;
  for (uint64_t part : parts) stream = mix(stream + kGolden + part);
  return stream;
}

constexpr uint64_t hash_at(uint64_t stream, uint64_t index) {
  return mix(stream + (index + 1) * kGolden);
}

// The four 16-bit parts of a hash added up and centred: near normal (Irwin–Hall), within ±3.5
// standard deviations, so that no single value dominates by accident.
inline constexpr int32_t kBellMean = 131070;
constexpr int32_t bell_of(uint64_t hash) {
  const uint64_t pairs = (hash & 0x0000ffff0000ffffull) + ((hash >> 16) & 0x0000ffff0000ffffull);
  return static_cast<int32_t>((pairs & 0xffffffffu) + (pairs >> 32)) - kBellMean;
}
// Standard deviation of bell_of: sqrt(4 · (65536² − 1) / 12).
inline constexpr double kBellDeviation = 37837.22772;

// out[i] = bell(index first + i), scaled to the standard deviation `deviation`.
void fill_bell(uint64_t stream, uint64_t first, int n, double deviation, float* out);

// Rows of neighbouring positions that are correlated: each channel is the centred sum of uniform
// numbers at its own position and at the three before it, near normal with the deviation of
// bell_of, and correlated 3/4, 1/2 and 1/4 with its neighbours. Four channels share a hash, 16 bits
// each.
inline constexpr int kWalkMemory = 4, kWalkLanes = 4;
inline constexpr int32_t kWalkMean = kWalkMemory * 65535 / 2;
constexpr int walk_hashes(int n) { return (n + kWalkLanes - 1) / kWalkLanes; }  // of a row
// Row of hashes that the position reads, `back` positions ago.
constexpr uint64_t walk_row_index(int position, int back) {
  return static_cast<uint64_t>(position) + kWalkMemory - back;
}
// Channel i of the row of n channels at `position` ≥ 0.
constexpr int32_t walk_of(uint64_t stream, int position, int n, int i) {
  int32_t sum = -kWalkMean;
  for (int back = 0; back < kWalkMemory; ++back) {
    const uint64_t index = walk_row_index(position, back) * walk_hashes(n) + i / kWalkLanes;
    sum += static_cast<int32_t>(hash_at(stream, index) >> (16 * (i % kWalkLanes)) & 0xffff);
  }
  return sum;
}
// out[i] = walk_of(stream, position, n, i) · scales[i].
void fill_walk(uint64_t stream, int position, int n, const float* scales, float* out);

// What the two functions above run, for one of simd_targets(); the same bits everywhere. `scale`:
// deviation/kBellDeviation.
struct NoiseRows {
  void (*bell)(uint64_t stream, uint64_t first, int n, float scale, float* out);
  void (*walk)(uint64_t stream, int position, int n, const float* scales, float* out);
};
NoiseRows noise_rows(int64_t simd_target);

// Factors on the channels of one KV head: a few key channels are outliers (×3–×8, whole rotary
// pairs), so that a format loses about as much in one layer as on a trained model's rows
// (SmolLM2-135M, text: int8:g32 0.01–0.03, int4:g32 0.2–0.45 of the attention's output). `query` is
// the counterweight on the query heads that read this KV head: with unit-normal q and k, q·k/√dim
// then has the standard deviation `kScoreDeviation`.
struct ChannelScales {
  std::vector<double> key, query;  // dim each
};
inline constexpr double kScoreDeviation = 2.0;
ChannelScales channel_scales(uint64_t stream, int dim, const Rope* rope);

}  // namespace kvmark
