// Products of 16-bit words and what they multiply: codes of int8 and int4 as words. For the SIMD
// targets that have no integer dot products over bytes (dot4-inl.h).
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engines/codecs/codec.h"
#include "engines/codecs/prepared_group.h"

#if defined(KVMARK_CODECS_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_WORDS_INL_H_
#undef KVMARK_CODECS_WORDS_INL_H_
#else
#define KVMARK_CODECS_WORDS_INL_H_
#endif

#include "engines/codecs/dense-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

using IntTag = hn::ScalableTag<int32_t>;
using UnsignedTag = hn::ScalableTag<uint32_t>;
using WordTag = hn::ScalableTag<int16_t>;
using IntVec = hn::Vec<IntTag>;
using UnsignedVec = hn::Vec<UnsignedTag>;
using WordVec = hn::Vec<WordTag>;

// Register tiles are of up to kMaxQueries queries and, where vectors are short, two vectors: eight
// sums, what they are of and a factor fill the sixteen registers that a target may have.
inline constexpr int kWordVectors = std::min(2, kTileVectors);

// The largest magnitude of quantized queries and probabilities: a word, signed.
inline constexpr float kWordMax = 32767;

// Σ a(2i) · b(2i) + a(2i + 1) · b(2i + 1) in the int32 lane i.
struct WordProducts {
  IntVec sum, other;  // other: of targets that widen half a vector at a time

  HWY_INLINE void clear() { sum = other = hn::Zero(IntTag()); }
  HWY_INLINE void add(WordVec a, WordVec b) {
    sum = in_register(hn::ReorderWidenMulAccumulate(IntTag(), a, b, sum, other));
  }
  HWY_INLINE IntVec total() const { return hn::RearrangeToOddPlusEven(sum, other); }
};

HWY_INLINE WordVec load_words(const std::byte* p) {
  return hn::LoadU(WordTag(), reinterpret_cast<const int16_t*>(p));
}
// The two words at p in every lane of four bytes.
HWY_INLINE WordVec broadcast_words(const float* p) {
  return hn::BitCast(WordTag(), hn::Set(FloatTag(), *p));
}

// Lanes of 32 bits that hold a quad of channels or rows in words. Two would do; all four are kept
// so that they are stored as one vector.
inline constexpr int kQuadWords = 4;
// Words x(i), the lower halves of four lanes of 32 bits, of a quad → x(0), x(2) in lane 0, x(1),
// x(3) in lane 1. The other two lanes are of no use.
HWY_INLINE IntVec paired(IntVec x) {
  alignas(16) static constexpr uint8_t kBytes[16] = {0, 1, 8, 9, 4, 5, 12, 13,
                                                     0, 1, 8, 9, 4, 5, 12, 13};
  const auto table = hn::LoadDup128(hn::ScalableTag<uint8_t>(), kBytes);
  return hn::TableLookupBytes(x, hn::BitCast(IntTag(), table));
}

// All words shifted, zeros coming in.
template <int kBits>
HWY_INLINE WordVec shift_right_unsigned(WordVec x) {
  const hn::ScalableTag<uint16_t> tag;
  return hn::BitCast(WordTag(), hn::ShiftRight<kBits>(hn::BitCast(tag, x)));
}

// Words are exact to 2e-5 of the largest; the tolerance leaves room for outliers.
inline constexpr double kWordTolerance = 1e-3;

// Four bytes of a lane hold kParts quads of codes. `keys` and `values` give quad kPart as words:
// codes 0 and 2, then codes 1 and 3. Codes of keys are biased, those of values signed.
struct ByteOperands {
  static constexpr double kTolerance = kWordTolerance;
  static constexpr int kParts = 1;

  template <int kPart>
  HWY_INLINE static void keys(WordVec bytes, WordVec* words) {
    words[0] = hn::And(bytes, hn::Set(WordTag(), 0x00ff));
    words[1] = shift_right_unsigned<8>(bytes);
  }
  template <int kPart>
  HWY_INLINE static void values(WordVec bytes, WordVec* words) {
    words[0] = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
    words[1] = hn::ShiftRight<8>(bytes);
  }
};

struct NibbleOperands {
  static constexpr double kTolerance = kWordTolerance;
  static constexpr int kParts = 2;

  template <int kPart>
  HWY_INLINE static void keys(WordVec bytes, WordVec* words) {
    const WordVec low = hn::Set(WordTag(), 0x000f);
    if constexpr (kPart == 0) {
      words[0] = hn::And(bytes, low);
      words[1] = hn::And(hn::ShiftRight<8>(bytes), low);
    } else {
      words[0] = hn::And(hn::ShiftRight<4>(bytes), low);
      words[1] = shift_right_unsigned<12>(bytes);
    }
  }
  template <int kPart>
  HWY_INLINE static void values(WordVec bytes, WordVec* words) {
    words[0] = hn::ShiftRight<12>(hn::ShiftLeft<12 - 4 * kPart>(bytes));
    words[1] = hn::ShiftRight<12>(hn::ShiftLeft<4 - 4 * kPart>(bytes));
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
