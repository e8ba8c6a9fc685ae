// Which cases of a plan two builds both know.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/gate/visit.h"
#include "bench/plan/plan.h"

namespace kvmark {

struct CommonCases {
  std::vector<Group> groups;  // the plan's, without cases that stand in it twice
  std::vector<OneSided> one_sided;
  std::vector<std::string> unknown;  // to both, "label: why the new build does not know it"
};

// This program has expanded the plan; each build is asked, by a worker for each case, whether it
// knows it. A case that the machine has no room or time for stays, unasked: no build runs it. So
// does one whose worker dies: that is a fault of the build, which its record will say.
CommonCases common_cases(const Plan& plan, const Binary& base, const Binary& now,
                         const VisitOptions& options);

}  // namespace kvmark
