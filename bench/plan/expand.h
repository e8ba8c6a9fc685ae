// From values to groups of cases: the product of the axes.
#pragma once

#include <vector>

#include "bench/plan/bind.h"
#include "bench/plan/case.h"
#include "bench/plan/plan.h"

namespace kvmark {

// Defaults that hang on other values (the model, lengths, threads, name), checks that concern
// several keys, and paths made ready to be opened: from the plan's folder, else the current one.
void complete_values(Values& values, const std::string& path);

// Every combination, the first axis of the field table slowest; asks the catalog about each engine.
// Throws UsageError that names the place of the value that cannot be.
std::vector<Group> expand(const Values& values);

}  // namespace kvmark
