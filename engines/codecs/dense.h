// Rows of plain numbers, sixteen to a tile: what f32, f16, bf16 and fp8 have in common.
#pragma once

#include <algorithm>

#include "engines/codecs/codec.h"
#include "engines/core/bits.h"

namespace kvmark {

// Keys lie channel by channel, (dim, 16 rows), so that one vector holds a channel of sixteen rows
// and scores need no sums over lanes; values lie row by row, (16 rows, dim), since their sums run
// over rows. `Number` says how a float becomes a Word and back.
template <typename Number>
struct DenseFormat {
  using Word = typename Number::Word;
  static int64_t scale_bytes(int /*dim*/) { return 0; }

  struct Side {
    static TileSpec tile(int dim) {
      const int row_of_channel = kTileRows * static_cast<int>(sizeof(Word));
      return {.tokens = kTileRows,
              .bytes = int64_t{dim} * row_of_channel,
              .align = std::min(row_of_channel, 64)};
    }
  };

  struct Keys : Side {
    KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                              int slot) {
      auto* words = reinterpret_cast<Word*>(tile) + slot;
      // Narrowed side by side, which is vector code, then spread.
      constexpr int kChunk = 64;
      Word chunk[kChunk];
      int clamped = 0;
      for (int first = 0; first < dim; first += kChunk) {
        const int n = std::min(kChunk, dim - first);
        clamped += narrow_row(row + first, n, chunk);
        for (int d = 0; d < n; ++d) words[(first + d) * kTileRows] = chunk[d];
      }
      return clamped;
    }
    KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int slot, int dim,
                                               float* row) {
      const auto* words = reinterpret_cast<const Word*>(tile) + slot;
      for (int d = 0; d < dim; ++d) row[d] = Number::widen(words[d * kTileRows]);
    }
  };

  struct Values : Side {
    KVMARK_HD static KVMARK_INLINE int encode(const float* row, int dim, std::byte* tile,
                                              int slot) {
      return narrow_row(row, dim, reinterpret_cast<Word*>(tile) + int64_t{slot} * dim);
    }
    KVMARK_HD static KVMARK_INLINE void decode(const std::byte* tile, int slot, int dim,
                                               float* row) {
      const auto* words = reinterpret_cast<const Word*>(tile) + int64_t{slot} * dim;
      for (int d = 0; d < dim; ++d) row[d] = Number::widen(words[d]);
    }
  };

 private:
  KVMARK_HD static KVMARK_INLINE int narrow_row(const float* row, int n, Word* words) {
    int clamped = 0;
    for (int d = 0; d < n; ++d) {
      words[d] = Number::narrow(row[d]);
      clamped += abs_of(row[d]) > Number::kMax;
    }
    return clamped;
  }
};

}  // namespace kvmark
