#include "bench/record/clock.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kvmark {

ClockFigures measure_clock() {
  constexpr int kLoops = 15, kReads = 20000;
  std::array<double, kLoops> overhead_ns;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (double& overhead : overhead_ns) {
    const int64_t start = now_ns();
    int64_t last = start;
    for (int i = 0; i < kReads; ++i) {
      const int64_t now = now_ns();
      if (now > last) smallest = std::min(smallest, now - last);
      last = now;
    }
    overhead = static_cast<double>(last - start) / kReads;
  }
  std::sort(overhead_ns.begin(), overhead_ns.end());
  return {overhead_ns[kLoops / 2], static_cast<double>(smallest)};
}

}  // namespace kvmark
