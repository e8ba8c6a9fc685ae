// The table of codecs, for each SIMD target.
#include <map>
#include <vector>

#include "engines/codecs/registry.h"
#include "engines/codecs/simd.h"
#include "engines/core/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engines/codecs/codecs.cc"
#include <hwy/foreach_target.h>
// Highway wants this order.
#include <hwy/highway.h>

#include "engines/codecs/generic-inl.h"
#include "engines/codecs/ints-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// The formats whose kernels are their own.
template <>
struct KernelsOf<F32> {
  using type = DenseKernels<float>;
};
template <>
struct KernelsOf<F16> {
  using type = DenseKernels<hwy::float16_t>;
};
template <>
struct KernelsOf<Bf16> {
  using type = DenseKernels<hwy::bfloat16_t>;
};
template <>
struct KernelsOf<Fp8E4m3> {
  using type = DenseKernels<E4m3Code>;
};

#if KVMARK_HAS_INTS
template <int kGroup>
struct KernelsOf<Int8<kGroup>> {
  using type = IntKernels<Int8<kGroup>, ByteOperands>;
};
template <int kGroup>
struct KernelsOf<Int4<kGroup>> {
  using type = IntKernels<Int4<kGroup>, NibbleOperands>;
};
#endif

template <typename... Formats>
std::vector<Codec> codecs_of_list(FormatList<Formats...>) {
  return {make_codec<Formats>()...};
}

std::vector<Codec> make_codecs() { return codecs_of_list(RegisteredFormats()); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvmark {

HWY_EXPORT(make_codecs);

std::span<const Codec> codecs_of(int64_t simd_target) {
  static const std::map<int64_t, std::vector<Codec>> tables = [] {
    std::map<int64_t, std::vector<Codec>> made;
    for (const int64_t target : simd_targets()) {
      made[target] = KVMARK_DISPATCH(make_codecs, target)();
    }
    return made;
  }();
  const auto table = tables.find(simd_target);
  check(table != tables.end(), "no codecs for SIMD target {}", simd_target);
  return table->second;
}

}  // namespace kvmark
#endif  // HWY_ONCE
