// The one thing that a layout knows of a number format.
#pragma once

#include <cstdint>

namespace kvmark {

// The memory of `tokens` consecutive slots of one KV head. Payload, scales and any interleave are
// the format's private business; a layout knows only this.
struct TileSpec {
  int tokens = 1;
  int64_t bytes = 0;
  int align = 1;             // a power of two ≤ 64; divides `bytes`
  bool row_writable = true;  // false: a tile is written once, whole
};

// Promise of a format: how far a decoded value may be from the one that was stored, where the
// largest of its row is `largest`. The absolute part is for rows near the format's smallest step.
struct RowBound {
  double relative = 0;
  double absolute = 0;
  constexpr double of(double largest) const { return relative * largest + absolute; }
};

}  // namespace kvmark
