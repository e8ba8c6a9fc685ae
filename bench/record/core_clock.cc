#include "bench/record/core_clock.h"

#include <algorithm>
#include <cstdint>

#include "bench/record/clock.h"

namespace kvmark {
namespace {

constexpr int kSteps = 4096;  // of two cycles: 2 µs at 4 GHz, a hundred times the clock's own cost
constexpr int kChains = 4;

// Volatile, so that the compiler cannot know them and fold the chain. (Additions of constants are
// folded by processors too.)
volatile uint64_t added = 0x9e3779b97f4a7c15u, flipped = 0x2545f4914f6cdd1du, last = 1;

double chain_ghz() {
  const uint64_t add = added, flip = flipped;
  const int64_t from = now_ns();
  uint64_t x = last;
  for (int i = 0; i < kSteps; ++i) x = (x ^ flip) + add;
  last = x;
  return 2.0 * kSteps / static_cast<double>(std::max<int64_t>(1, now_ns() - from));
}

}  // namespace

double core_ghz() {
  double best = 0;
  for (int i = 0; i < kChains; ++i) best = std::max(best, chain_ghz());
  return best;
}

}  // namespace kvmark
