// Loops over a step's rows that may be too short to be shared.
#pragma once

#include <cstdint>

#include "engines/core/thread_pool.h"

namespace kvmark {

// Twice the floats at which two awake threads, forked and joined, rotate and encode as fast as the
// caller alone.
inline constexpr int64_t kFloatsWorthAFork = 4096;

// How many threads a loop over `floats` floats is worth: all, or the caller's.
inline int threads_worth(const ThreadPool& pool, int64_t floats) {
  return floats < kFloatsWorthAFork ? 1 : pool.threads();
}

// body(index, thread) for each index in [0, n), as pool.run(), on all or one of its threads.
template <typename Body>
void run_on(int threads, ThreadPool& pool, int n, Body&& body) {
  if (threads > 1) {
    pool.run(n, body);
  } else {
    for (int index = 0; index < n; ++index) body(index, 0);
  }
}

}  // namespace kvmark
