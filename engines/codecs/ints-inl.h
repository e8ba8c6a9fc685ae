// Kernels over tiles of int8 and int4 (int8.h, int4.h) by integer dot products, for the SIMD target
// that has them: queries and probabilities are quantized too, so that four products and their sums
// are one instruction and no code is ever converted to a float. Highway has no such operation (its
// target AVX3_DL requires the processor to have it), so this is written in intrinsics throughout.
//
// Integer sums are exact in any order; what is rounded depends on one query and one group alone.
#include <hwy/highway.h>

#include "engines/codecs/codec.h"
#include "engines/codecs/ints_keys-inl.h"
#include "engines/codecs/ints_values-inl.h"

// Compiled for one target, so this guard needs no toggle.
#if HWY_TARGET == HWY_AVX3_DL && !defined(KVMARK_CODECS_INTS_INL_H_)
#define KVMARK_CODECS_INTS_INL_H_

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

// The kernels of Int8<…> with ByteOperands and of Int4<…> with NibbleOperands.
template <typename Format, typename Operands>
struct IntKernels {
  using Keys = IntKeys<typename Format::Keys, Operands>;
  using Values = IntValues<typename Format::Values, Operands>;
  static constexpr double kTolerance = Operands::kTolerance;

  static std::string_view kernel() { return hwy::TargetName(HWY_TARGET); }
  static int64_t prepared_floats(int dim) { return Keys::prepared_floats(dim); }
  static void prepare(const float* q, int dim, float* prepared) { Keys::prepare(q, dim, prepared); }
  static void scores(const float* q, int queries, int dim, std::span<const TileRun> runs, float* s,
                     float* /*scratch*/) {
    Keys::scores(q, queries, dim, runs, s);
  }
  static void accumulate(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         float* o, float* /*scratch*/) {
    Values::accumulate(p, queries, dim, runs, o);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // HWY_AVX3_DL, include guard
