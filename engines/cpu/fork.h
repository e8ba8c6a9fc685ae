// Loops over rows that may be too short to be shared.
#pragma once

#include <cstdint>

#include "engines/core/thread_pool.h"

namespace kvmark {

// Floats that one thread rotates and encodes, in the slowest format, in about the time of a fork
// and join of awake threads (`append` and `fork` of kvmark_micro). Only loops well above it gain.
inline constexpr int64_t kFloatsWorthAFork = 4096;

// body(index, thread) for each index in [0, n), as pool.run(), for a loop that goes over `floats`
// floats in all: on the caller's thread alone where they are few.
template <typename Body>
void run_where_worth(ThreadPool& pool, int n, int64_t floats, Body&& body) {
  if (floats >= kFloatsWorthAFork) {
    pool.run(n, body);
  } else {
    for (int index = 0; index < n; ++index) body(index, 0);
  }
}

}  // namespace kvmark
