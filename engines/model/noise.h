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
constexpr uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
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
constexpr int32_t bell_of(uint64_t hash) {
  const uint64_t pairs = (hash & 0x0000ffff0000ffffull) + ((hash >> 16) & 0x0000ffff0000ffffull);
  return static_cast<int32_t>((pairs & 0xffffffffu) + (pairs >> 32)) - 131070;
}
// Standard deviation of bell_of: sqrt(4 · (65536² − 1) / 12).
inline constexpr double kBellDeviation = 37837.22772;

// out[i] = bell(index first + i), scaled to the standard deviation `deviation`.
void fill_bell(uint64_t stream, uint64_t first, int n, double deviation, float* out);

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
