#include "engines/attention/rotate.h"

#include "engines/codecs/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/attention/rotate.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

#include "engines/codecs/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// One head in vectors of D: out = rotate(x) · scale. Fused operations are written as such: the
// compiler would fuse others as it likes, in one vector length and not in another.
template <class D>
struct HeadPass {
  using V = hn::Vec<D>;
  static constexpr int kStep = hn::MaxLanes(D());

  const float* x;
  const Rotation& rotation;
  float scale;
  float* out;
  V residue = hn::Zero(D());  // NaN from the first result on that is not finite: 0 · ∞ is NaN

  HWY_INLINE V scaled(V v) {
    v = hn::Mul(v, hn::Set(D(), scale));
    residue = hn::MulAdd(v, hn::Zero(D()), residue);
    return v;
  }
  HWY_INLINE bool finite() const { return hn::AllTrue(D(), hn::Eq(residue, hn::Zero(D()))); }

  // Whole vectors of pairs from pair i on; returns the first pair that is left.
  HWY_INLINE int turn(int i) {
    const D d;
    const bool halves = rotation.pairing == RopePairing::halves;
    for (; i + kStep <= rotation.pairs; i += kStep) {
      const V c = hn::LoadU(d, rotation.cosines + i);
      const V s = hn::LoadU(d, rotation.sines + i);
      V a, b;
      if (halves) {
        a = hn::LoadU(d, x + i);
        b = hn::LoadU(d, x + rotation.pairs + i);
      } else {
        hn::LoadInterleaved2(d, x + 2 * i, a, b);
      }
      const V turned_a = scaled(hn::MulSub(a, c, hn::Mul(b, s)));
      const V turned_b = scaled(hn::MulAdd(a, s, hn::Mul(b, c)));
      if (halves) {
        hn::StoreU(turned_a, d, out + i);
        hn::StoreU(turned_b, d, out + rotation.pairs + i);
      } else {
        hn::StoreInterleaved2(turned_a, turned_b, d, out + 2 * i);
      }
    }
    return i;
  }

  // Whole vectors of channels [i, dim) that don't turn; returns the first that is left.
  HWY_INLINE int keep(int i, int dim) {
    for (; i + kStep <= dim; i += kStep) {
      hn::StoreU(scaled(hn::LoadU(D(), x + i)), D(), out + i);
    }
    return i;
  }
};

HWY_INLINE bool rotate_head(const float* x, int dim, const Rotation& rotation, float scale,
                            float* out) {
  HeadPass<FloatTag> whole{x, rotation, scale, out};
  HeadPass<hn::CappedTag<float, 4>> few{x, rotation, scale, out};
  HeadPass<hn::CappedTag<float, 1>> one{x, rotation, scale, out};
  one.turn(few.turn(whole.turn(0)));
  one.keep(few.keep(whole.keep(2 * rotation.pairs, dim), dim), dim);
  return whole.finite() && few.finite() && one.finite();
}

bool rotate_rows(const float* x, int heads, int dim, const Rotation& rotation, float scale,
                 float* out) {
  bool finite = true;
  for (int head = 0; head < heads; ++head) {
    const int64_t at = int64_t{head} * dim;
    finite &= rotate_head(x + at, dim, rotation, scale, out + at);
  }
  return finite;
}

RotateHeads make_rotate_heads() { return &rotate_rows; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_rotate_heads);

RotateHeads rotate_heads(int64_t simd_target) {
  return KVMARK_DISPATCH(make_rotate_heads, simd_target)();
}

}  // namespace kvmark
#endif  // HWY_ONCE
