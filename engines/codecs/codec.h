// What a number format is to the rest of kvmark.
//
// A format is one header with a struct of static members (see fp8.h for a small one):
//
//   struct Some {
//     static constexpr const char* kName = "some";   // as in engine names
//     static constexpr RowBound kStoredBound{1e-5, 0};  // of |decoded − encoded| (core/tile.h)
//     static int64_t scale_bytes(int dim);           // of one row: scales and zero points
//     static TileSpec tile(int dim);                 // one KV head of `dim` channels
//     // → values clamped. Input is finite; what the format cannot reach saturates.
//     static int encode(const float* row, int dim, std::byte* tile, int slot);
//     static void decode(const std::byte* tile, int slot, int dim, float* row);
//   };
//
// Where keys and values lie differently, tile, encode and decode are members of two structs within
// it, Keys and Values. encode and decode are KVMARK_HD and KVMARK_INLINE (core/bits.h): a plain
// loop in them becomes vector code of each SIMD target.
//
// Its line in registry.h makes it a codec everywhere: the `generic` kernel is compiled from encode
// and decode for every SIMD target, and the conformance tests run over it. A format for
// which KernelsOf (codecs.cc) names a kernel of its own uses that instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engines/core/tile.h"

namespace kvmark {

// Positions are worked on in blocks of this many, at fixed absolute positions, so that a row's
// result depends on nothing but its own keys and values.
inline constexpr int kBlock = 32;
// The most rows of a tile, a divisor of kBlock; also the most rows of a TileRun.
inline constexpr int kTileRows = 16;

// Consecutive slots that lie one behind the other: slot s of the run is row (first_slot + s) %
// tokens of tile (first_slot + s) / tokens, counted from `tiles`. A run of tiles that hold several
// rows stays within one of them.
struct TileRun {
  const std::byte* tiles = nullptr;
  int first_slot = 0;
  int rows = 0;  // ≤ kTileRows
  int at = 0;    // of its first row within the block of kBlock positions
  // What will be read some kilobytes later: kernels prefetch from here on as they go. Any address.
  const std::byte* ahead = nullptr;
};

// How one side of a format, its keys or its values, is stored.
struct TileForm {
  TileSpec (*tile)(int dim) = nullptr;
  int (*encode)(const float* row, int dim, std::byte* tile, int slot) = nullptr;
  void (*decode)(const std::byte* tile, int slot, int dim, float* row) = nullptr;
};

// A registered format. Kernels take `queries` rows at once (the query heads of a group, times the
// rows of a prefill block), so that each stored row is decoded once for all of them. The result of
// a query depends on neither the other queries nor on how the rows of a block are cut into runs.
struct Codec {
  std::string_view name;
  std::string_view kernel;  // "generic" or a SIMD target
  double tolerance = 0;     // of its kernel: relative RMS error of outputs over the rows as stored
  RowBound stored_bound;
  int64_t (*scale_bytes)(int dim) = nullptr;
  TileForm k, v;

  // Floats of a query as `scores` wants it, and a query row of `dim` floats → that form.
  int64_t (*prepared_floats)(int dim) = nullptr;
  void (*prepare)(const float* q, int dim, float* prepared) = nullptr;
  // s(query, at + row) = Σ_d q(query, d) · k(row, d) for the rows of `runs`, which lie in one
  // block; other scores stay as they are. q: (queries, prepared_floats); s: (queries, kBlock);
  // scratch: (kBlock + 1) · dim floats.
  void (*scores)(const float* q, int queries, int dim, std::span<const TileRun> runs, float* s,
                 float* scratch) = nullptr;
  // o(query, d) += Σ_row p(query, at + row) · v(row, d), rows in ascending order. p: (queries,
  // kBlock), from 0 to some thousands (see SoftmaxKernels), all of a block perhaps near 0; all runs
  // of a block in one call; o: (queries, dim). A block of zero probability leaves o as it is, bit
  // for bit.
  void (*accumulate)(const float* p, int queries, int dim, std::span<const TileRun> runs, float* o,
                     float* scratch) = nullptr;
};

// Every registered codec, for the SIMD target that this machine runs (KVMARK_SIMD=name forces one;
// throws UsageError when it is unknown or not supported here).
std::span<const Codec> codecs();
// Null when there is none of that name.
const Codec* find_codec(std::string_view name);
// The SIMD target in use, e.g. "AVX3".
std::string_view simd_target();

}  // namespace kvmark
