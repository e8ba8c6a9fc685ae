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

}  // namespace kvmark
