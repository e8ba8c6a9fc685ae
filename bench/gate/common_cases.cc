#include "bench/gate/common_cases.h"

#include <fmt/format.h>

#include <set>

#include "bench/run/group_run.h"

namespace kvmark {
namespace {

bool is_run_at_all(const Case& c, const Sampling& sampling) {
  return !skip_reason(c, predict(c, sampling.settle_steps), sampling, memory_budget());
}

// Nothing, or why the build does not know the case.
std::optional<std::string> unknown_to(const Binary& binary, const Case& c,
                                      const VisitOptions& options) {
  try {
    return why_unknown(binary, c, options);
  } catch (const WorkerFailed&) {
    return {};
  }
}

}  // namespace

CommonCases common_cases(const Plan& plan, const Binary& base, const Binary& now,
                         const VisitOptions& options) {
  CommonCases common;
  std::set<std::string> seen;
  for (const Group& group : plan.groups) {
    Group kept;
    for (const Case& c : group.cases) {
      if (!seen.insert(case_id(c)).second) continue;
      if (is_run_at_all(c, plan.sampling)) {
        const auto in_base = unknown_to(base, c, options), in_now = unknown_to(now, c, options);
        if (in_base && in_now) {
          common.unknown.push_back(fmt::format("{}: {}", case_label(c), *in_now));
        } else if (in_base) {
          common.one_sided.push_back({case_label(c), "base: " + *in_base, false});
        } else if (in_now) {
          common.one_sided.push_back({case_label(c), "new: " + *in_now, true, true});
        }
        if (in_base || in_now) continue;
      }
      kept.cases.push_back(c);
    }
    if (!kept.cases.empty()) common.groups.push_back(std::move(kept));
  }
  return common;
}

}  // namespace kvmark
