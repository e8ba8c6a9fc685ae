// Vectors of floats and the ends of rows, which fill no whole one; compiled for each SIMD target.
#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

// Highway's include guard for code that is compiled several times.
#if defined(KVMARK_CODECS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_LANES_INL_H_
#undef KVMARK_CODECS_LANES_INL_H_
#else
#define KVMARK_CODECS_LANES_INL_H_
#endif

// Sets of vectors that are filled in a loop stay in registers only where the loop is unrolled.
#undef KVMARK_PRAGMA
#undef KVMARK_UNROLL
#define KVMARK_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define KVMARK_UNROLL(times) KVMARK_PRAGMA(unroll times)
#else
#define KVMARK_UNROLL(times) KVMARK_PRAGMA(GCC unroll times)
#endif

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int kLanes = HWY_LANES(float);

// kLanes numbers at p as floats.
HWY_INLINE FloatVec load(const float* p) { return hn::LoadU(FloatTag(), p); }
HWY_INLINE FloatVec load(const hwy::float16_t* p) {
  return hn::PromoteTo(FloatTag(), hn::LoadU(hn::Rebind<hwy::float16_t, FloatTag>(), p));
}
HWY_INLINE FloatVec load(const hwy::bfloat16_t* p) {
  return hn::PromoteTo(FloatTag(), hn::LoadU(hn::Rebind<hwy::bfloat16_t, FloatTag>(), p));
}

// An fp8:e4m3 code (engines/codecs/fp8.h).
struct E4m3Code {
  uint8_t bits;
};
HWY_INLINE FloatVec load(const E4m3Code* p) {
  const hn::Rebind<int8_t, FloatTag> bytes;
  const hn::Rebind<int16_t, FloatTag> words;
  const auto code = hn::LoadU(bytes, reinterpret_cast<const int8_t*>(&p->bits));
  // As f16 bits, sign and exponent in place, a code means 2^−8 of its value, subnormals too. The
  // sign's copies reach the highest bit; the one behind it must go.
  const auto shifted = hn::ShiftLeft<7>(hn::PromoteTo(words, code));
  const auto half = hn::And(shifted, hn::Set(words, static_cast<int16_t>(0xbfff)));
  const hn::Rebind<hwy::float16_t, FloatTag> halves;
  return hn::Mul(hn::PromoteTo(FloatTag(), hn::BitCast(halves, half)), hn::Set(FloatTag(), 256.0f));
}

// Keeps a vector in its register, as it is here. A loaded one gcc would read again at each of its
// uses, as an operand in memory, and a core reads fewer vectors a cycle than it multiplies. Integer
// sums it would put into another order, for which all terms must be at hand at once.
template <typename Vec>
HWY_INLINE Vec in_register(Vec v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// The same pointer, of which the compiler knows nothing: addresses behind it are computed when they
// are needed. gcc 12 would compute each address of an unrolled loop from what all have in common,
// ahead of the loop, and keep them on the stack. Or it would compute several at once in a vector
// register, out of which they come only behind all products that are under way: loads of the next
// block would wait for the last one's.
template <typename T>
HWY_INLINE T* anew(T* p) {
#if defined(__GNUC__)
  asm("" : "+r"(p));
#endif
  return p;
}

// The first n < kLanes numbers at p, the other lanes 0; touches nothing behind them.
template <typename T>
HWY_INLINE FloatVec load_first(const T* p, int n) {
#if !HWY_MEM_OPS_MIGHT_FAULT && HWY_TARGET != HWY_SCALAR  // which loads whatever its mask says
  if constexpr (std::is_same_v<T, float>) {
    return hn::MaskedLoad(hn::FirstN(FloatTag(), static_cast<size_t>(n)), FloatTag(), p);
  }
#endif
  HWY_ALIGN T lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}

HWY_INLINE void store_first(FloatVec v, float* p, int n) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, FloatTag(), lanes);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
