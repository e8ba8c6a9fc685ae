#include "bench/run/extra_work.h"

#include <algorithm>
#include <limits>

#include "bench/record/clock.h"

namespace kvmark {
namespace {

constexpr int64_t kTrial = 200'000;  // operations, some 0.2 ms
constexpr int kTrials = 8;           // the fastest counts: others were disturbed

// A chain of operations that each wait for the one before.
void operate(int64_t operations) {
  uint64_t state = 1;
  for (int64_t i = 0; i < operations; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(state));
  }
}

}  // namespace

void ExtraWork::calibrate(double step_ms) {
  double fastest_ms = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < kTrials; ++trial) {
    const int64_t from = now_ns();
    operate(kTrial);
    fastest_ms = std::min(fastest_ms, ms_from_ns(now_ns() - from));
  }
  operations_ = std::max<int64_t>(1, static_cast<int64_t>(share_ * step_ms / fastest_ms * kTrial));
}

void ExtraWork::run() const { operate(operations_); }

}  // namespace kvmark
