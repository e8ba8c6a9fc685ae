// The rows of noise.h in vectors. All is integer arithmetic up to one rounding multiply, so that
// every target makes the bits of the scalar expressions, which finish a row.
#include "engines/codecs/simd.h"
#include "engines/model/noise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/model/noise_rows.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// The vector parts return how many channels they made; the rest is for the scalar expressions.
#if HWY_TARGET == HWY_SCALAR
int bell_vectors(uint64_t, uint64_t, int, float, float*) { return 0; }
int walk_vectors(uint64_t, int, int, const float*, float*) { return 0; }
#else
namespace hn = hwy::HWY_NAMESPACE;

using WordTag = hn::ScalableTag<uint64_t>;
using FloatTag = hn::Repartition<float, WordTag>;
using Words = hn::Vec<WordTag>;
constexpr WordTag kWords;
constexpr FloatTag kFloats;
constexpr hn::Repartition<int32_t, WordTag> kInts;
constexpr uint64_t kPairMask = 0x0000ffff0000ffffull;  // two of four 16-bit parts

HWY_INLINE Words multiply(Words a, uint64_t b) { return hn::Mul(a, hn::Set(kWords, b)); }

HWY_INLINE Words mix_lanes(Words z) {
  z = multiply(hn::Xor(z, hn::ShiftRight<30>(z)), kMixFirst);
  z = multiply(hn::Xor(z, hn::ShiftRight<27>(z)), kMixSecond);
  return hn::Xor(z, hn::ShiftRight<31>(z));
}

// The hashes of neighbouring indices: hash_at(stream, first + lane), lane · kGolden in `lanes`.
HWY_INLINE Words hash_lanes(uint64_t stream, uint64_t first, Words lanes) {
  return mix_lanes(hn::Add(hn::Set(kWords, stream + (first + 1) * kGolden), lanes));
}

// bell_of of the lanes, in the low halves of the words.
HWY_INLINE Words bell_lanes(Words hash) {
  const Words mask = hn::Set(kWords, kPairMask);
  const Words pairs = hn::Add(hn::And(hash, mask), hn::And(hn::ShiftRight<16>(hash), mask));
  return hn::Add(pairs, hn::ShiftRight<32>(pairs));
}

int bell_vectors(uint64_t stream, uint64_t first, int n, float scale, float* out) {
  const int words = static_cast<int>(hn::Lanes(kWords));
  const Words lanes = multiply(hn::Iota(kWords, 0), kGolden);
  const auto mean = hn::Set(kInts, kBellMean);
  const auto scales = hn::Set(kFloats, scale);
  int i = 0;
  for (; i + 2 * words <= n; i += 2 * words) {
    const Words low = bell_lanes(hash_lanes(stream, first + i, lanes));
    const Words high = bell_lanes(hash_lanes(stream, first + i + words, lanes));
    const auto sums = hn::ConcatEven(kInts, hn::BitCast(kInts, high), hn::BitCast(kInts, low));
    const auto bells = hn::ConvertTo(kFloats, hn::Sub(sums, mean));
    hn::StoreU(hn::Mul(bells, scales), kFloats, out + i);
  }
  return i;
}

// The four channels of a hash lie in its 16-bit parts, lowest first: `even` gathers the first and
// third, `odd` the second and fourth.
int walk_vectors(uint64_t stream, int position, int n, const float* scales, float* out) {
  const int words = static_cast<int>(hn::Lanes(kWords)), hashes = walk_hashes(n);
  const Words lanes = multiply(hn::Iota(kWords, 0), kGolden);
  const Words mask = hn::Set(kWords, kPairMask);
  const auto mean = hn::Set(kInts, kWalkMean);
  int at = 0;  // hash
  for (; (at + words) * kWalkLanes <= n; at += words) {
    Words even = hn::Zero(kWords), odd = hn::Zero(kWords);
    for (int back = 0; back < kWalkMemory; ++back) {
      const uint64_t row = walk_row_index(position, back) * hashes;
      const Words hash = hash_lanes(stream, row + at, lanes);
      even = hn::Add(even, hn::And(hash, mask));
      odd = hn::Add(odd, hn::And(hn::ShiftRight<16>(hash), mask));
    }
    const auto evens = hn::ConvertTo(kFloats, hn::Sub(hn::BitCast(kInts, even), mean));
    const auto odds = hn::ConvertTo(kFloats, hn::Sub(hn::BitCast(kInts, odd), mean));
    hn::Vec<FloatTag> even_scales, odd_scales;
    hn::LoadInterleaved2(kFloats, scales + at * kWalkLanes, even_scales, odd_scales);
    hn::StoreInterleaved2(hn::Mul(evens, even_scales), hn::Mul(odds, odd_scales), kFloats,
                          out + at * kWalkLanes);
  }
  return at * kWalkLanes;
}
#endif

void bell_row(uint64_t stream, uint64_t first, int n, float scale, float* out) {
  for (int i = bell_vectors(stream, first, n, scale, out); i < n; ++i) {
    out[i] = static_cast<float>(bell_of(hash_at(stream, first + i))) * scale;
  }
}

void walk_row(uint64_t stream, int position, int n, const float* scales, float* out) {
  for (int i = walk_vectors(stream, position, n, scales, out); i < n; ++i) {
    out[i] = static_cast<float>(walk_of(stream, position, n, i)) * scales[i];
  }
}

NoiseRows make_rows() { return {&bell_row, &walk_row}; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_rows);

NoiseRows noise_rows(int64_t simd_target) { return KVMARK_DISPATCH(make_rows, simd_target)(); }

void fill_bell(uint64_t stream, uint64_t first, int n, double deviation, float* out) {
  static const NoiseRows rows = noise_rows(chosen_simd_target());
  rows.bell(stream, first, n, static_cast<float>(deviation / kBellDeviation), out);
}

void fill_walk(uint64_t stream, int position, int n, const float* scales, float* out) {
  static const NoiseRows rows = noise_rows(chosen_simd_target());
  rows.walk(stream, position, n, scales, out);
}

}  // namespace kvmark
#endif  // HWY_ONCE
