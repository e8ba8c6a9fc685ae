// `--dry-run`: what a run would do and about what it would take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/plan.h"

namespace kvmark {

// A case with loading, verifying and its rounds, as far as the budget lets them start.
double predicted_case_seconds(const Prediction& predicted, const Sampling& sampling);

// The groups under the headings of the report, a line a case: predicted bytes and seconds, or why
// it will be skipped; then the total.
std::string dry_run_table(const std::vector<Plan>& plans, std::optional<int64_t> memory_budget);

}  // namespace kvmark
