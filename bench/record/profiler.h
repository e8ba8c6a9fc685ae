// Where the time of a step goes.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engines/core/observer.h"

namespace kvmark {

// "other", "qkv", …: the record's profile keys are these with "_ms".
std::string_view phase_name(Phase phase);

// Time by phase. A step begins in Phase::other, and the time up to each enter() belongs to the
// phase before it, so the phases always add up to the step exactly. Also opens NVTX ranges: step or
// prefill, within it layer, within that phase. Calls outside a step are ignored.
class StepProfiler : public StepObserver {
 public:
  // `name` is the NVTX range's: "step", "prefill", "settle".
  void begin_step(const char* name = "step");
  void end_step();
  void enter(Phase phase) override;
  void enter_layer(int layer) override;

  // Of the last step that ended.
  int64_t step_ns() const { return step_ns_; }
  int64_t phase_ns(Phase phase) const { return phases_[static_cast<int>(phase)]; }

  // Adds the last step to the totals.
  void keep();
  int kept() const { return kept_; }
  // The record's "profile": mean milliseconds a kept step by phase, null where none was kept.
  nlohmann::ordered_json profile() const;

 private:
  void charge(int64_t now);
  void close_layer();

  std::array<int64_t, kPhases> phases_{};
  std::array<int64_t, kPhases> totals_{};
  int kept_ = 0;
  Phase phase_ = Phase::other;
  bool stepping_ = false;
  bool layer_open_ = false;
  bool phase_open_ = false;
  int64_t begin_ = 0;
  int64_t last_ = 0;  // when the current phase began
  int64_t step_ns_ = 0;
};

}  // namespace kvmark
