// Rows of floats → codes side by side, before a format puts them where its tiles want them.
// Compiled for each SIMD target; the codes and words are those of group.h and bits.h, bit for bit.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "engines/codecs/group.h"
#include "engines/codecs/lanes-inl.h"

#if defined(KVMARK_CODECS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_ROW_INL_H_
#undef KVMARK_CODECS_ROW_INL_H_
#else
#define KVMARK_CODECS_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// What vector code needs to know of a group of group.h.
template <typename Group>
struct GroupCodes;

template <int kMax>
struct GroupCodes<SymmetricGroup<kMax>> {
  using Code = int8_t;
  using Group = SymmetricGroup<kMax>;

  template <int kVectors>
  static HWY_INLINE Group fit(const FloatVec (&x)[kVectors]) {
    FloatVec largest = hn::Abs(x[0]);
    for (int i = 1; i < kVectors; ++i) largest = hn::Max(largest, hn::Abs(x[i]));
    return Group::of(hn::GetLane(hn::MaxOfLanes(FloatTag(), largest)));
  }
  static HWY_INLINE FloatVec steps(const Group& group, FloatVec x) {
    const FloatTag d;
    const FloatVec steps = hn::Mul(x, hn::Set(d, group.scale.inverse));
    return hn::Clamp(steps, hn::Set(d, -float{kMax}), hn::Set(d, float{kMax}));
  }
  static HWY_INLINE bool may_clamp(const Group& group) { return group.scale.saturated; }
};

template <int kMax>
struct GroupCodes<AsymmetricGroup<kMax>> {
  using Code = uint8_t;
  using Group = AsymmetricGroup<kMax>;

  template <int kVectors>
  static HWY_INLINE Group fit(const FloatVec (&x)[kVectors]) {
    const FloatTag d;
    FloatVec low = x[0], high = x[0];
    for (int i = 1; i < kVectors; ++i) {
      low = hn::Min(low, x[i]);
      high = hn::Max(high, x[i]);
    }
    return Group::of(hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)));
  }
  static HWY_INLINE FloatVec steps(const Group& group, FloatVec x) {
    const FloatTag d;
    const FloatVec above = hn::Sub(x, hn::Set(d, group.minimum));
    const FloatVec steps = hn::Mul(above, hn::Set(d, group.scale.inverse));
    return hn::Clamp(steps, hn::Zero(d), hn::Set(d, float{kMax}));
  }
  static HWY_INLINE bool may_clamp(const Group& group) {
    return group.scale.saturated || group.minimum == -kF16Max;
  }
};

// One whole group: its words and kGroup codes. Returns how many of the first n values are clamped.
template <typename Group, int kGroup>
HWY_INLINE int quantize_group(const float* x, int n, uint16_t* words,
                              typename GroupCodes<Group>::Code* codes) {
  using Codes = GroupCodes<Group>;
  constexpr int kVectors = kGroup / kLanes;
  const FloatTag d;
  FloatVec values[kVectors];
  for (int i = 0; i < kVectors; ++i) values[i] = hn::LoadU(d, x + i * kLanes);
  const Group group = Codes::fit(values);
  group.store(words);
  const hn::Rebind<typename Codes::Code, FloatTag> code_tag;
  for (int i = 0; i < kVectors; ++i) {
    const auto rounded = hn::NearestInt(Codes::steps(group, values[i]));  // ties to even
    hn::StoreU(hn::DemoteTo(code_tag, rounded), code_tag, codes + i * kLanes);
  }
  return HWY_UNLIKELY(Codes::may_clamp(group)) ? group.clamped(x, n) : 0;
}

// One row of `dim` finite floats in groups of kGroup channels, the last of which may be shorter.
// words: Group::kWords for each group, as Group::store() has them; codes: one for each channel,
// int8_t around zero (SymmetricGroup) or uint8_t above the minimum (AsymmetricGroup). Returns the
// number of values clamped.
template <typename Group, int kGroup>
HWY_INLINE int quantize_row(const float* row, int dim, uint16_t* words,
                            typename GroupCodes<Group>::Code* codes) {
  int clamped = 0;
  int first = 0;
  for (; first + kGroup <= dim; first += kGroup, words += Group::kWords) {
    clamped += quantize_group<Group, kGroup>(row + first, kGroup, words, codes + first);
  }
  if (first < dim) {
    // One of its own values, repeated, makes a whole group of it and changes no word.
    HWY_ALIGN float whole[kGroup];
    HWY_ALIGN typename GroupCodes<Group>::Code whole_codes[kGroup];
    const int n = dim - first;
    std::copy_n(row + first, n, whole);
    std::fill(whole + n, whole + kGroup, row[first]);
    clamped += quantize_group<Group, kGroup>(whole, n, words, whole_codes);
    std::copy_n(whole_codes, n, codes + first);
  }
  return clamped;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
