// The cases of a group: a worker each, and rounds that alternate between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "bench/run/case_run.h"

namespace kvmark {

// The part of the memory that is available when a group starts that its workers may take.
inline constexpr double kMemoryShare = 0.8;

// Bytes that the workers of a group may take together now; nothing where the system does not tell.
std::optional<int64_t> memory_budget();

// Which cases are resident together, as indices. The first case that fits is the anchor: it takes
// part in every wave, so that waves can be compared. A case that fits beside nobody has a wave of
// its own, at the end, without the anchor. `bytes`: predicted, each ≤ budget; no budget: one wave.
struct Wave {
  std::vector<size_t> cases;
  bool with_anchor = true;
};
std::vector<Wave> plan_waves(const std::vector<int64_t>& bytes, std::optional<int64_t> budget);

// Runs the cases and appends a row for each of them: ok, skipped, failed or invalid. Throws
// Interrupted; rows that were appended by then stay.
void run_group(const std::vector<Case>& cases, const RunContext& context);

// Why a case is not run at all, known beforehand, or nothing.
std::optional<std::string> skip_reason(const Case& c, const Prediction& predicted,
                                       const Sampling& sampling,
                                       std::optional<int64_t> memory_budget);

}  // namespace kvmark
