// Integer dot products over bytes, what they multiply, and the smaller things that the kernels of
// ints-inl.h share. For the target AVX3_DL only.
#include <hwy/highway.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engines/codecs/dense-inl.h"
#include "engines/codecs/prepared_group.h"

// Compiled for one target, so this guard needs no toggle.
#if HWY_TARGET == HWY_AVX3_DL && !defined(KVMARK_CODECS_DOT4_INL_H_)
#define KVMARK_CODECS_DOT4_INL_H_

// AVX3_DL is chosen where the processor has AVX512-VNNI, but its attributes don't name it.
#define KVMARK_VNNI_TARGET HWY_TARGET_STR ",avx512vnni"
#define KVMARK_VNNI_ATTR __attribute__((target(KVMARK_VNNI_TARGET)))
// gcc 12 takes what its own intrinsics leave undefined for a mistake.
#define KVMARK_BEFORE_VNNI()                                     \
  HWY_PUSH_ATTRIBUTES(KVMARK_VNNI_TARGET)                        \
  HWY_DIAGNOSTICS(push)                                          \
  HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized") \
  HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wmaybe-uninitialized")
#define KVMARK_AFTER_VNNI() \
  HWY_DIAGNOSTICS(pop)      \
  HWY_POP_ATTRIBUTES

KVMARK_BEFORE_VNNI()
namespace kvmark {
namespace HWY_NAMESPACE {

// sum(lane) + Σ_j a(lane, j) · b(lane, j) over the four bytes of a lane, a unsigned, b signed. Does
// not saturate.
HWY_INLINE __m512i dot4(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}

HWY_INLINE __m512i load_bytes(const std::byte* p) { return _mm512_loadu_si512(p); }
// The float or the four bytes at p, in every lane.
HWY_INLINE __m512i broadcast4(const void* p) {
  return _mm512_castps_si512(_mm512_set1_ps(*static_cast<const float*>(p)));
}
// Sixteen f16 numbers at p.
HWY_INLINE __m512 load_scales(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// A bit for each of the first n lanes; all sixteen where there are more.
HWY_INLINE __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>((1u << std::min(n, 16)) - 1);
}

// The sum with numbers of kTerms terms, from those with either term, the high one first.
template <int kTerms>
HWY_INLINE __m512i total(const __m512i* sums) {
  return kTerms == 1 ? sums[0] : _mm512_add_epi32(_mm512_slli_epi32(sums[0], 8), sums[kTerms - 1]);
}

// The largest magnitudes of quantized queries, whose terms are signed, and of probabilities.
inline constexpr float query_max(int terms) { return terms == 1 ? 127 : 127 * 256; }
inline constexpr float weight_max(int terms) { return terms == 1 ? 255 : 65535; }

// Two terms make a 16-bit number: exact to 2e-5 of the largest.
struct ByteOperands {
  static constexpr double kTolerance = 1e-3;
  static constexpr int kQueryTerms = 2;
  static constexpr int kWeightTerms = 2;
  static constexpr int kParts = 1;        // vectors of codes in 64 bytes
  static constexpr float kValueUnit = 1;  // of a code in what `values` returns

  HWY_INLINE static void keys(__m512i bytes, __m512i* parts) { parts[0] = bytes; }
  HWY_INLINE static void values(__m512i bytes, __m512i* parts) { parts[0] = bytes; }
};

// One term for probabilities: the error of 8 bits is a tenth of what int4 itself loses, but for
// values of which some rows are 100 times as large as others of their block: those others vanish
// then. Two for queries: with the outliers of real keys one would move the outputs by 3e-2 and
// more.
struct NibbleOperands {
  static constexpr double kTolerance = 3e-2;
  static constexpr int kQueryTerms = 2;
  static constexpr int kWeightTerms = 1;
  static constexpr int kParts = 2;
  static constexpr float kValueUnit = 16;

  HWY_INLINE static void keys(__m512i bytes, __m512i* parts) {
    const __m512i low = _mm512_set1_epi8(0x0f);
    parts[0] = _mm512_and_si512(bytes, low);
    parts[1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low);
  }
  HWY_INLINE static void values(__m512i bytes, __m512i* parts) {
    const __m512i high = _mm512_set1_epi8(static_cast<char>(0xf0));
    parts[0] = _mm512_and_si512(_mm512_slli_epi16(bytes, 4), high);
    parts[1] = _mm512_and_si512(bytes, high);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
KVMARK_AFTER_VNNI()

#endif  // HWY_AVX3_DL, include guard
