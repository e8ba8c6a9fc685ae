#include "bench/doctor/control_groups.h"

#include <algorithm>
#include <filesystem>

#include "bench/doctor/system_files.h"
#include "engines/core/split.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// Version 1 writes a number of this size where there is no limit.
constexpr int64_t kNoLimit = int64_t{1} << 60;

template <typename T>
void take_smaller(std::optional<T>& value, std::optional<T> other) {
  if (other && (!value || *other < *value)) value = other;
}

// "200000 100000" or "max 100000".
std::optional<double> quota_v2(const fs::path& folder) {
  const auto line = file_line(folder / "cpu.max");
  if (!line) return std::nullopt;
  const auto quota = leading_integer(*line);
  const size_t blank = line->find(' ');
  if (!quota || blank == std::string::npos) return std::nullopt;
  const auto period = leading_integer(std::string_view(*line).substr(blank + 1));
  if (!period || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// −1: no quota.
std::optional<double> quota_v1(const fs::path& folder) {
  const auto quota = file_integer(folder / "cpu.cfs_quota_us");
  const auto period = file_integer(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<int64_t> memory_limit(const fs::path& file) {
  const auto limit = file_integer(file);
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

void take_throttling(GroupLimits& limits, const fs::path& folder) {
  const auto stat = file_text(folder / "cpu.stat");
  const auto periods = keyed_integer(stat, "nr_throttled");
  if (!periods || (limits.throttled_periods && *periods <= *limits.throttled_periods)) return;
  limits.throttled_periods = periods;
  limits.throttled_ms = std::nullopt;
  if (const auto us = keyed_integer(stat, "throttled_usec")) {  // version 2
    limits.throttled_ms = static_cast<double>(*us) * 1e-3;
  } else if (const auto ns = keyed_integer(stat, "throttled_time")) {  // version 1
    limits.throttled_ms = static_cast<double>(*ns) * 1e-6;
  }
}

void take_cpu(GroupLimits& limits, const fs::path& folder) {
  take_smaller(limits.cpu_quota_cores, quota_v1(folder));
  take_smaller(limits.cpu_quota_cores, quota_v2(folder));
  take_throttling(limits, folder);
}

void take_memory(GroupLimits& limits, const fs::path& folder) {
  take_smaller(limits.memory_limit_bytes, memory_limit(folder / "memory.limit_in_bytes"));
  take_smaller(limits.memory_limit_bytes, memory_limit(folder / "memory.max"));
}

// The mount and every group from there down to the process's. In a container the path may be the
// host's and not be there; the mount itself is then the container's group.
template <typename Take>
void for_ancestors(const fs::path& mount, std::string_view group, Take take) {
  fs::path folder = mount;
  take(folder);
  for (const fs::path& part : fs::path(group).relative_path()) take(folder /= part);
}

}  // namespace

GroupLimits group_limits(const SystemPaths& paths) {
  GroupLimits limits;
  const fs::path mount = paths.cgroup;
  const auto text = file_text(paths.proc + "/self/cgroup");
  for (const std::string& line : split(text.value_or(""), '\n')) {  // hierarchy:controllers:path
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> controllers = split(parts[1], ',');
    const auto controls = [&](const char* name) {
      return std::find(controllers.begin(), controllers.end(), name) != controllers.end();
    };
    if (parts[1].empty()) {  // version 2, alone or beside version 1
      for (const fs::path& root : {mount, mount / "unified"}) {
        for_ancestors(root, parts[2], [&](const fs::path& folder) {
          take_cpu(limits, folder);
          take_memory(limits, folder);
        });
      }
    }
    if (controls("cpu")) {
      for_ancestors(mount / "cpu", parts[2], [&](const auto& f) { take_cpu(limits, f); });
    }
    if (controls("memory")) {
      for_ancestors(mount / "memory", parts[2], [&](const auto& f) { take_memory(limits, f); });
    }
  }
  return limits;
}

}  // namespace kvmark
