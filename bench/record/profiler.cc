#include "bench/record/profiler.h"

#include <fmt/format.h>

#include "bench/record/clock.h"
#include "bench/record/nvtx.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

// In the order of Phase; literals, so that data() ends with a zero.
constexpr std::array<std::string_view, kPhases> kNames = {"other", "qkv", "append", "attend",
                                                          "out",   "ffn", "lm_head"};

// The record's order: as the phases come in a step, the rest last.
constexpr std::array<Phase, kPhases> kOrder = {
    Phase::qkv, Phase::append, Phase::attend, Phase::out, Phase::ffn, Phase::lm_head, Phase::other};

}  // namespace

std::string_view phase_name(Phase phase) { return kNames[static_cast<int>(phase)]; }

void StepProfiler::begin_step(const char* name) {
  check(!stepping_, "StepProfiler: a step is still open");
  phases_ = {};
  stepping_ = true;
  phase_ = Phase::other;
  nvtx_push(name);
  begin_ = last_ = now_ns();
}

void StepProfiler::end_step() {
  check(stepping_, "StepProfiler: no step is open");
  const int64_t now = now_ns();
  charge(now);
  step_ns_ = now - begin_;
  stepping_ = false;
  close_layer();
  nvtx_pop();
}

void StepProfiler::enter(Phase phase) {
  if (!stepping_) return;
  charge(now_ns());
  phase_ = phase;
  if (phase == Phase::lm_head) {
    close_layer();  // the layers are over
  } else if (phase_open_) {
    nvtx_pop();
  }
  nvtx_push(phase_name(phase).data());
  phase_open_ = true;
}

void StepProfiler::enter_layer(int layer) {
  if (!stepping_) return;
  close_layer();
  if constexpr (kNvtx) nvtx_push(fmt::format("layer {}", layer).c_str());
  layer_open_ = true;
}

void StepProfiler::keep() {
  check(!stepping_, "StepProfiler: keep() within a step");
  for (int i = 0; i < kPhases; ++i) totals_[i] += phases_[i];
  ++kept_;
}

nlohmann::ordered_json StepProfiler::profile() const {
  nlohmann::ordered_json json;
  for (Phase phase : kOrder) {
    auto& value = json[fmt::format("{}_ms", phase_name(phase))];
    if (kept_ > 0) value = ms_from_ns(totals_[static_cast<int>(phase)]) / kept_;
  }
  return json;
}

void StepProfiler::charge(int64_t now) {
  phases_[static_cast<int>(phase_)] += now - last_;
  last_ = now;
}

// Ranges nest, so the phase within the layer goes first.
void StepProfiler::close_layer() {
  if (phase_open_) nvtx_pop();
  if (layer_open_) nvtx_pop();
  phase_open_ = layer_open_ = false;
}

}  // namespace kvmark
