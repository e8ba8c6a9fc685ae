// A slowdown to order, for testing what is meant to find slowdowns.
#pragma once

#include <cstdint>

namespace kvmark {

// Arithmetic that adds a part of a step's time to each step, on the thread that runs the steps: it
// needs no turn of the pool, which would take longer than the work in a short step. It is work, a
// number of operations fixed once, and not a wait for a time: what slows the machine down slows it
// too.
class ExtraWork {
 public:
  // `share` of a step, ≥ 0; 0 does nothing.
  explicit ExtraWork(double share) : share_(share) {}

  // Not yet calibrated, and there is something to do.
  bool due() const { return share_ > 0 && operations_ == 0; }
  // Fixes the operations: `share` of a step that takes `step_ms`.
  void calibrate(double step_ms);
  // After each step, within its time.
  void run() const;

 private:
  double share_;
  int64_t operations_ = 0;
};

}  // namespace kvmark
