// Kernels over tiles of int8 and int4 (int8.h, int4.h) by integer products: queries and
// probabilities are quantized too, so that no code is ever converted to a float.
//
// Where the processor has dot products of bytes, four products and their sums are one instruction
// (dot4*-inl.h). Highway has no such operation (its target AVX3_DL requires the processor to have
// it), so that is written in intrinsics throughout. Elsewhere codes become 16-bit words, and two
// products and their sum are one (words*-inl.h).
//
// Integer sums are exact in any order; what is rounded depends on one query and one group alone.
#include <hwy/highway.h>

#include "engines/codecs/codec.h"

#if defined(KVMARK_CODECS_INTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_INTS_INL_H_
#undef KVMARK_CODECS_INTS_INL_H_
#else
#define KVMARK_CODECS_INTS_INL_H_
#endif

// Targets of one lane, or without vectors, have no such kernels.
#undef KVMARK_HAS_INTS
#if HWY_TARGET == HWY_AVX3_DL
#define KVMARK_HAS_INTS 1
#include "engines/codecs/dot4_keys-inl.h"
#include "engines/codecs/dot4_values-inl.h"
#elif HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define KVMARK_HAS_INTS 1
#include "engines/codecs/words_keys-inl.h"
#include "engines/codecs/words_values-inl.h"
#else
#define KVMARK_HAS_INTS 0
#endif

#if KVMARK_HAS_INTS
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
#endif  // KVMARK_HAS_INTS

#endif  // include guard
