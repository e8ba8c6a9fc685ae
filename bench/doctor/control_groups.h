// What the control groups of this process allow it.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/record/probes.h"

namespace kvmark {

// The tightest of the process's groups and all their ancestors, versions 1 and 2, also side by
// side. Nothing: no limit, or the system does not tell.
struct GroupLimits {
  std::optional<double> cpu_quota_cores;      // cores' worth of time a period
  std::optional<int64_t> memory_limit_bytes;  // that all processes of the group may take
  // Periods since the group's start in which it was stopped because its quota was used up, and for
  // how long, of the group that was stopped most often.
  std::optional<int64_t> throttled_periods;
  std::optional<double> throttled_ms;
};
GroupLimits group_limits(const SystemPaths& paths = {});

}  // namespace kvmark
