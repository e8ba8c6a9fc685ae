// The clock of every measurement.
#pragma once

#include <chrono>
#include <cstdint>

namespace kvmark {

// Nanoseconds of a clock that never steps; only differences mean something.
inline int64_t now_ns() {
  using Nanoseconds = std::chrono::nanoseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Nanoseconds>(now).count();
}

inline double ms_from_ns(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

}  // namespace kvmark
