// The kernel that every format has: a run of rows is decoded to f32, then the dense kernels work on
// it. Compiled for each SIMD target, with the format's encode and decode inlined into it.
#include <hwy/highway.h>

#include "engines/codecs/codec.h"

#if defined(KVMARK_CODECS_GENERIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVMARK_CODECS_GENERIC_INL_H_
#undef KVMARK_CODECS_GENERIC_INL_H_
#else
#define KVMARK_CODECS_GENERIC_INL_H_
#endif

#include "engines/codecs/dense-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvmark {
namespace HWY_NAMESPACE {

template <typename Format>
struct GenericKernels {
  static int encode(const float* row, int dim, std::byte* tile, int slot) {
    return Format::encode(row, dim, tile, slot);
  }
  static void decode(const std::byte* tile, int slot, int dim, float* row) {
    decode_rows({tile, slot, 1}, dim, row);
  }

  // The only place where decode is inlined, once a format and target: it is what takes long to
  // compile.
  static HWY_NOINLINE void decode_rows(const TileRun& run, int dim, float* rows) {
    const TileSpec tile = Format::tile(dim);
    for (int r = 0; r < run.rows; ++r) {
      const int slot = run.first_slot + r;
      Format::decode(run.tiles + slot / tile.tokens * tile.bytes, slot % tile.tokens, dim,
                     rows + int64_t{r} * dim);
    }
  }

  // Rows as floats, `stride` floats between them.
  struct Rows {
    const float* data;
    int64_t stride;
  };
  static HWY_INLINE Rows decode_run(const TileRun& run, int dim, float* scratch) {
    if constexpr (requires { Format::rows_in_place(run.tiles); }) {
      const int64_t stride = Format::tile(dim).bytes / static_cast<int64_t>(sizeof(float));
      return {Format::rows_in_place(run.tiles) + run.first_slot * stride, stride};
    } else {
      decode_rows(run, dim, scratch);
      return {scratch, dim};
    }
  }

  static void scores(const float* q, int q_stride, int queries, int dim, const TileRun& keys,
                     float* s, int s_stride, float* scratch) {
    const Rows rows = decode_run(keys, dim, scratch);
    dot_rows(q, q_stride, queries, rows.data, rows.stride, keys.rows, dim, s, s_stride);
  }
  static void accumulate(const float* p, int p_stride, int queries, int dim, const TileRun& values,
                         float* o, int o_stride, float* scratch) {
    const Rows rows = decode_run(values, dim, scratch);
    add_rows(p, p_stride, queries, rows.data, rows.stride, values.rows, dim, o, o_stride);
  }

  static Codec codec() {
    return {.name = Format::kName,
            .kernel = "generic",
            .tolerance = Format::kTolerance,
            .stored_bound = Format::kStoredBound,
            .tile = &Format::tile,
            .scale_bytes = &Format::scale_bytes,
            .encode = &encode,
            .decode = &decode,
            .scores = &scores,
            .accumulate = &accumulate};
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
