// What a number format is to the rest of kvmark.
//
// A format is one header with a struct of static members (see f32.h for the smallest):
//
//   struct F32 {
//     static constexpr const char* kName = "f32";   // as in engine names
//     static constexpr double kTolerance = 1e-5;    // of a correct kernel: relative RMS error
//     static constexpr RowBound kStoredBound{1e-5, 0};  // of |decoded − encoded| (core/tile.h)
//     static TileSpec tile(int dim);                // one KV head of `dim` channels
//     static int64_t scale_bytes(int dim);          // of one row: scales and zero points
//     // → values clamped. Input is finite; what the format cannot reach saturates.
//     static int encode(const float* row, int dim, std::byte* tile, int slot);
//     static void decode(const std::byte* tile, int slot, int dim, float* row);
//     // Only where rows are plain floats, one behind the other: no decoding is needed.
//     static const float* rows_in_place(const std::byte* tiles);
//   };
//
// encode and decode are KVMARK_HD and KVMARK_INLINE (core/bits.h): a plain loop in them becomes
// vector code of each SIMD target.
//
// Its line in registry.h makes it a codec everywhere: the `generic` kernel is compiled from encode
// and decode for every SIMD target, and the conformance tests run over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engines/core/tile.h"

namespace kvmark {

// Consecutive slots whose tiles lie one behind the other: slot s of the run is row
// (first_slot + s) % tokens of tile (first_slot + s) / tokens, counted from `tiles`. At most kBlock
// rows.
struct TileRun {
  const std::byte* tiles = nullptr;
  int first_slot = 0;
  int rows = 0;
};

// A registered format. Kernels take `queries` rows at once (the query heads of a group, times the
// rows of a prefill block), so that each stored row is decoded once for all of them.
struct Codec {
  std::string_view name;
  std::string_view kernel;  // "generic" or a SIMD target
  double tolerance = 0;
  RowBound stored_bound;
  TileSpec (*tile)(int dim) = nullptr;
  int64_t (*scale_bytes)(int dim) = nullptr;
  int (*encode)(const float* row, int dim, std::byte* tile, int slot) = nullptr;
  void (*decode)(const std::byte* tile, int slot, int dim, float* row) = nullptr;
  // s(query, row) = Σ_d q(query, d) · k(row, d). q: (queries, dim) with `q_stride` floats between
  // rows; s: (queries, ·) with `s_stride`; scratch: kBlock · dim floats.
  void (*scores)(const float* q, int q_stride, int queries, int dim, const TileRun& keys, float* s,
                 int s_stride, float* scratch) = nullptr;
  // o(query, d) += Σ_row p(query, row) · v(row, d), rows in ascending order. A row of zero
  // probability leaves o as it is, bit for bit.
  void (*accumulate)(const float* p, int p_stride, int queries, int dim, const TileRun& values,
                     float* o, int o_stride, float* scratch) = nullptr;
};

// Positions are worked on in blocks of this many, at fixed absolute positions, so that a row's
// result depends on nothing but its own keys and values.
inline constexpr int kBlock = 32;

// Every registered codec, for the SIMD target that this machine runs (KVMARK_SIMD=name forces one;
// throws UsageError when it is unknown or not supported here).
std::span<const Codec> codecs();
// Null when there is none of that name.
const Codec* find_codec(std::string_view name);
// The SIMD target in use, e.g. "AVX3".
std::string_view simd_target();

}  // namespace kvmark
