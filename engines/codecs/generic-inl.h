// From a format to its Codec, compiled for each SIMD target, with the format's encode and decode
// inlined into it; and the kernel that every format has: rows are decoded to f32, then the dense
// kernels work on them.
#include <hwy/highway.h>

#include <algorithm>

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

// The structs that say how a format stores keys and values: its own, or itself for both.
template <typename Format>
struct SidesOf {
  using Keys = Format;
  using Values = Format;
};
template <typename Format>
requires requires { typename Format::Keys; }
struct SidesOf<Format> {
  using Keys = typename Format::Keys;
  using Values = typename Format::Values;
};

template <typename Side>
struct FormOf {
  static int encode(const float* row, int dim, std::byte* tile, int slot) {
    return Side::encode(row, dim, tile, slot);
  }
  // The only place where decode is inlined, once a format and target: it is what takes long to
  // compile.
  static HWY_NOINLINE void decode(const std::byte* tile, int slot, int dim, float* row) {
    Side::decode(tile, slot, dim, row);
  }
  static void decode_row(const TileRun& run, int r, int dim, float* row) {
    const TileSpec tile = Side::tile(dim);
    const int slot = run.first_slot + r;
    decode(run.tiles + slot / tile.tokens * tile.bytes, slot % tile.tokens, dim, row);
  }
  static TileForm form() { return {&Side::tile, &encode, &decode}; }
};

template <typename Format>
struct GenericKernels : PlainQueries {
  static std::string_view kernel() { return "generic"; }
  using Keys = FormOf<typename SidesOf<Format>::Keys>;
  using Values = FormOf<typename SidesOf<Format>::Values>;

  // scratch: two tiles of f32 keys, (dim, kTileRows) each, and a row.
  static void scores(const float* q, int queries, int dim, std::span<const TileRun> runs, float* s,
                     float* scratch) {
    float* row = scratch + int64_t{kBlock} * dim;
    for (const TileRun& run : runs) {
      for (int r = 0; r < run.rows; ++r) {
        Keys::decode_row(run, r, dim, row);
        const int at = run.at + r;
        float* lane = scratch + int64_t{at / kTileRows} * kTileRows * dim + at % kTileRows;
        for (int d = 0; d < dim; ++d) lane[int64_t{d} * kTileRows] = row[d];
      }
    }
    TileRun decoded[kBlock];
    const size_t count = runs_of_positions(runs, decoded);
    score_runs<float>(q, queries, dim, {decoded, count}, s, [&](const TileRun& run) {
      return scratch + int64_t{run.at / kTileRows} * kTileRows * dim;
    });
  }

  // scratch: (kBlock, dim) f32 values.
  static void accumulate(const float* p, int queries, int dim, std::span<const TileRun> runs,
                         float* o, float* scratch) {
    for (const TileRun& run : runs) {
      for (int r = 0; r < run.rows; ++r) {
        Values::decode_row(run, r, dim, scratch + int64_t{run.at + r} * dim);
      }
    }
    TileRun decoded[kBlock];
    const size_t count = runs_of_positions(runs, decoded);
    add_rows<float>(
        p, queries, dim, {decoded, count},
        [&](const TileRun& run) { return scratch + int64_t{run.at} * dim; }, o);
  }

 private:
  // The runs as they are once each row stands at its position in the block, in tiles of kTileRows:
  // joined where they meet, cut where a tile ends.
  static size_t runs_of_positions(std::span<const TileRun> runs, TileRun* joined) {
    size_t count = 0;
    for (const TileRun& run : runs) {
      const int end = run.at + run.rows;
      for (int at = run.at; at < end;) {
        const int next = std::min(end, (at / kTileRows + 1) * kTileRows);
        const bool meets =
            count > 0 && at % kTileRows != 0 && joined[count - 1].at + joined[count - 1].rows == at;
        if (meets) {
          joined[count - 1].rows += next - at;
        } else {
          joined[count++] = {.first_slot = at % kTileRows, .rows = next - at, .at = at};
        }
        at = next;
      }
    }
    return count;
  }
};

// The kernels of a format: those that a KernelsOf names for it, or the generic ones.
template <typename Format>
struct KernelsOf {
  using type = GenericKernels<Format>;
};

template <typename Format>
Codec make_codec() {
  using Kernels = typename KernelsOf<Format>::type;
  return {.name = Format::kName,
          .kernel = Kernels::kernel(),
          .tolerance = Kernels::kTolerance,
          .stored_bound = Format::kStoredBound,
          .scale_bytes = &Format::scale_bytes,
          .k = FormOf<typename SidesOf<Format>::Keys>::form(),
          .v = FormOf<typename SidesOf<Format>::Values>::form(),
          .prepared_floats = &Kernels::prepared_floats,
          .prepare = &Kernels::prepare,
          .scores = &Kernels::scores,
          .accumulate = &Kernels::accumulate};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kvmark
HWY_AFTER_NAMESPACE();

#endif  // include guard
