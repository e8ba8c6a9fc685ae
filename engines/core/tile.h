// The one thing that a layout knows of a number format.
#pragma once

#include <cstdint>
#include <limits>

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
// largest magnitude of its row is `largest`. The absolute part is for rows near the format's
// smallest step. A row whose largest magnitude is beyond `clamp_at` may hold clamped values and is
// promised nothing; no row within it is ever clamped.
struct RowBound {
  double relative = 0;
  double absolute = 0;
  double clamp_at = std::numeric_limits<double>::infinity();
  constexpr double of(double largest) const { return relative * largest + absolute; }
};

}  // namespace kvmark
