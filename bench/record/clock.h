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

// What reading the clock takes, and the smallest time that it tells from none. A resolution coarser
// than the overhead is the clock's own; else it is the time of a read.
struct ClockFigures {
  double overhead_ns;    // a read: the median of several loops
  double resolution_ns;  // smallest positive difference of two reads, one after the other
};
// Takes some 10 ms.
ClockFigures measure_clock();

inline double ms_from_ns(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

}  // namespace kvmark
