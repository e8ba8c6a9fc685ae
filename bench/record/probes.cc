#include "bench/record/probes.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// The number at the start of `text`, after blanks, colons and tabs.
std::optional<int64_t> leading_integer(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t:");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The number of the line that starts with `key`, as in /proc/self/status or memory.stat.
std::optional<int64_t> keyed_integer(const std::optional<std::string>& text, std::string_view key) {
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.substr(0, key.size()) != key) continue;
    const std::string_view after = line.substr(key.size());
    const size_t colon = after.find_first_not_of(" \t");
    // "VmRSS" must not match a longer key.
    if (colon == std::string_view::npos || (colon == 0 && after[0] != ':')) continue;
    return leading_integer(after);
  }
  return std::nullopt;
}

std::optional<int64_t> kib(std::optional<int64_t> value) {
  if (value) *value *= 1024;
  return value;
}

// The names of one version's files. A limit that is not a number ("max") is no limit.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  // key in memory.stat of what can be given back
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

std::optional<int64_t> left_in_group(const fs::path& folder, const GroupFiles& files) {
  const auto limit = leading_integer(read_text(folder / files.limit).value_or(""));
  const auto usage = leading_integer(read_text(folder / files.usage).value_or(""));
  if (!limit || !usage) return std::nullopt;
  const int64_t cache = keyed_integer(read_text(folder / "memory.stat"), files.cache).value_or(0);
  return std::max<int64_t>(0, *limit - *usage + cache);
}

void take_smaller(std::optional<int64_t>& value, std::optional<int64_t> other) {
  if (other && (!value || *other < *value)) value = other;
}

// Walks from the process's group up to the mount: the tightest ancestor counts. Inside a container
// the path may be the host's and not be there; the mount itself is then the container's group.
std::optional<int64_t> left_in_ancestors(const fs::path& mount, std::string_view group,
                                         const GroupFiles& files) {
  std::optional<int64_t> left = left_in_group(mount, files);
  fs::path folder = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    take_smaller(left, left_in_group(folder, files));
  }
  return left;
}

std::optional<int64_t> left_in_groups(const SystemPaths& paths) {
  std::optional<int64_t> left;
  std::istringstream lines(read_text(paths.proc + "/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (controllers == ",,") {
      take_smaller(left, left_in_ancestors(paths.cgroup, group, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      take_smaller(left, left_in_ancestors(fs::path(paths.cgroup) / "memory", group, kVersion1));
    }
  }
  return left;
}

template <typename T, typename Op>
std::optional<T> combine(const std::optional<T>& a, const std::optional<T>& b, Op op) {
  if (!a || !b) return std::nullopt;
  return op(*a, *b);
}

template <typename Op>
Probes combine(const Probes& a, const Probes& b, Op op) {
  return {.run_delay_ms = combine(a.run_delay_ms, b.run_delay_ms, op),
          .minor_faults = combine(a.minor_faults, b.minor_faults, op),
          .major_faults = combine(a.major_faults, b.major_faults, op),
          .voluntary_switches = combine(a.voluntary_switches, b.voluntary_switches, op),
          .involuntary_switches = combine(a.involuntary_switches, b.involuntary_switches, op),
          .migrations = combine(a.migrations, b.migrations, op)};
}

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::optional<T> value_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return std::nullopt;
  return it->get<T>();
}

}  // namespace

ProcessMemory process_memory(const SystemPaths& paths) {
  const auto status = read_text(paths.proc + "/self/status");
  const auto rollup = read_text(paths.proc + "/self/smaps_rollup");
  return {.rss_bytes = kib(keyed_integer(status, "VmRSS")),
          .peak_rss_bytes = kib(keyed_integer(status, "VmHWM")),
          .huge_page_bytes = kib(keyed_integer(rollup, "AnonHugePages"))};
}

std::optional<int64_t> available_memory(const SystemPaths& paths) {
  auto available = kib(keyed_integer(read_text(paths.proc + "/meminfo"), "MemAvailable"));
  take_smaller(available, left_in_groups(paths));
  return available;
}

std::optional<double> steal_ms(const SystemPaths& paths) {
  // "cpu  user nice system idle iowait irq softirq steal …", in clock ticks.
  std::istringstream line(read_text(paths.proc + "/stat").value_or(""));
  line.imbue(std::locale::classic());
  std::string name;
  double ticks = 0;
  line >> name;
  for (int column = 0; column < 8; ++column) line >> ticks;
  const long per_second = sysconf(_SC_CLK_TCK);
  if (!line || name != "cpu" || per_second <= 0) return {};
  return 1e3 * ticks / static_cast<double>(per_second);
}

Probes sample_probes(const SystemPaths& paths) {
  Probes probes;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    probes.minor_faults = usage.ru_minflt;
    probes.major_faults = usage.ru_majflt;
    probes.voluntary_switches = usage.ru_nvcsw;
    probes.involuntary_switches = usage.ru_nivcsw;
  }
  // The files of the process itself speak of its main thread only.
  std::error_code error;
  for (const auto& task : fs::directory_iterator(paths.proc + "/self/task", error)) {
    const std::string schedstat = read_text(task.path() / "schedstat").value_or("");
    const size_t second = schedstat.find(' ');  // ns on a core, ns waiting for one, slices
    if (second != std::string::npos) {
      if (const auto ns = leading_integer(std::string_view(schedstat).substr(second))) {
        probes.run_delay_ms = probes.run_delay_ms.value_or(0) + static_cast<double>(*ns) * 1e-6;
      }
    }
    if (const auto n = keyed_integer(read_text(task.path() / "sched"), "se.nr_migrations")) {
      probes.migrations = probes.migrations.value_or(0) + *n;
    }
  }
  return probes;
}

Probes operator-(const Probes& after, const Probes& before) {
  return combine(after, before, [](auto a, auto b) { return a - b; });
}

Probes operator+(const Probes& a, const Probes& b) {
  return combine(a, b, [](auto x, auto y) { return x + y; });
}

Json to_json(const Probes& probes) {
  Json json;
  json["run_delay_ms"] = value_or_null(probes.run_delay_ms);
  json["minor_faults"] = value_or_null(probes.minor_faults);
  json["major_faults"] = value_or_null(probes.major_faults);
  json["voluntary_switches"] = value_or_null(probes.voluntary_switches);
  json["involuntary_switches"] = value_or_null(probes.involuntary_switches);
  json["migrations"] = value_or_null(probes.migrations);
  return json;
}

Probes probes_from_json(const Json& json) {
  return {.run_delay_ms = value_of<double>(json, "run_delay_ms"),
          .minor_faults = value_of<int64_t>(json, "minor_faults"),
          .major_faults = value_of<int64_t>(json, "major_faults"),
          .voluntary_switches = value_of<int64_t>(json, "voluntary_switches"),
          .involuntary_switches = value_of<int64_t>(json, "involuntary_switches"),
          .migrations = value_of<int64_t>(json, "migrations")};
}

}  // namespace kvmark
