#include "bench/record/probes.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "bench/record/clock.h"
#include "bench/record/core_clock.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

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

std::optional<int64_t> left_in_group(const ControlGroup& group) {
  const GroupFiles& files = group.version2 ? kVersion2 : kVersion1;
  const auto limit = leading_integer(read_system_file(group.folder / files.limit));
  const auto usage = leading_integer(read_system_file(group.folder / files.usage));
  if (!limit || !usage) return std::nullopt;
  const std::string stat = read_system_file(group.folder / "memory.stat");
  return std::max<int64_t>(0, *limit - *usage + keyed_integer(stat, files.cache).value_or(0));
}

// The columns of the first line of /proc/stat: "cpu  user nice system idle iowait irq softirq steal
// …", all processors together.
struct MachineTime {
  std::optional<double> busy_ms, steal_ms;
};

MachineTime machine_time(const SystemPaths& paths) {
  const std::string text = read_system_file(paths.proc + "/stat");
  std::istringstream line(text.substr(0, text.find('\n')));
  line.imbue(std::locale::classic());
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  line >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  if (!line || name != "cpu" || ticks_per_second <= 0) return {};
  const double tick_ms = 1e3 / static_cast<double>(ticks_per_second);
  return {tick_ms * (user + nice + system + irq + softirq), tick_ms * steal};
}

// A group's quota binds its children too, but only its own file counts what it held back.
std::optional<double> throttled_ms(const SystemPaths& paths) {
  std::optional<double> ms;
  for (const ControlGroup& group : control_groups(paths, "cpu")) {
    const std::string stat = read_system_file(group.folder / "cpu.stat");
    const auto time = keyed_integer(stat, group.version2 ? "throttled_usec" : "throttled_time");
    if (!time) continue;
    ms = ms.value_or(0) + static_cast<double>(*time) * (group.version2 ? 1e-3 : 1e-6);
  }
  return ms;
}

// Of all cores that this process may use and of their packages.
std::optional<int64_t> thermal_throttles(const SystemPaths& paths) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::nullopt;
  std::optional<int64_t> events;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const fs::path folder =
        fmt::format("{}/devices/system/cpu/cpu{}/thermal_throttle", paths.sys, cpu);
    for (const char* file : {"core_throttle_count", "package_throttle_count"}) {
      const auto count = leading_integer(read_system_file(folder / file));
      if (count) events = events.value_or(0) + *count;
    }
    if (!events) return std::nullopt;  // where the first core does not tell, none does
  }
  return events;
}

void add_process_usage(Probes& probes) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  probes.cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
  probes.minor_faults = usage.ru_minflt;
  probes.major_faults = usage.ru_majflt;
  probes.voluntary_switches = usage.ru_nvcsw;
  probes.involuntary_switches = usage.ru_nivcsw;
}

// The files of the process itself speak of its main thread only.
void add_threads(const SystemPaths& paths, Probes& probes) {
  std::error_code error;
  for (const auto& task : fs::directory_iterator(paths.proc + "/self/task", error)) {
    const std::string schedstat = read_system_file(task.path() / "schedstat");
    const size_t second = schedstat.find(' ');  // ns on a core, ns waiting for one, slices
    if (second != std::string::npos) {
      if (const auto ns = leading_integer(std::string_view(schedstat).substr(second))) {
        probes.run_delay_ms = probes.run_delay_ms.value_or(0) + ms_from_ns(*ns);
      }
    }
    const std::string sched = read_system_file(task.path() / "sched");
    if (const auto n = keyed_integer(sched, "se.nr_migrations")) {
      probes.migrations = probes.migrations.value_or(0) + *n;
    }
  }
}

// ---- The list of all probes ----

// visit(name, member, how): `how` two stretches make one.
enum class Merge { sum, lowest, highest };

template <typename Visit>
void for_each_probe(Visit visit) {
  visit("wall_ms", &Probes::wall_ms, Merge::sum);
  visit("cpu_ms", &Probes::cpu_ms, Merge::sum);
  visit("run_delay_ms", &Probes::run_delay_ms, Merge::sum);
  visit("minor_faults", &Probes::minor_faults, Merge::sum);
  visit("major_faults", &Probes::major_faults, Merge::sum);
  visit("voluntary_switches", &Probes::voluntary_switches, Merge::sum);
  visit("involuntary_switches", &Probes::involuntary_switches, Merge::sum);
  visit("migrations", &Probes::migrations, Merge::sum);
  visit("machine_busy_ms", &Probes::machine_busy_ms, Merge::sum);
  visit("steal_ms", &Probes::steal_ms, Merge::sum);
  visit("throttled_ms", &Probes::throttled_ms, Merge::sum);
  visit("thermal_throttles", &Probes::thermal_throttles, Merge::sum);
  visit("lowest_core_ghz", &Probes::lowest_core_ghz, Merge::lowest);
  visit("highest_core_ghz", &Probes::highest_core_ghz, Merge::highest);
}

// a + sign · b of what adds up.
Probes combine(const Probes& a, const Probes& b, int sign) {
  Probes result;
  for_each_probe([&](const char*, auto member, Merge merge) {
    const auto &x = a.*member, &y = b.*member;
    if (!x || !y) return;
    if (merge == Merge::sum) {
      result.*member = *x + sign * *y;
    } else {
      result.*member = merge == Merge::lowest ? std::min(*x, *y) : std::max(*x, *y);
    }
  });
  return result;
}

}  // namespace

ProcessMemory process_memory(const SystemPaths& paths) {
  const std::string status = read_system_file(paths.proc + "/self/status");
  const std::string rollup = read_system_file(paths.proc + "/self/smaps_rollup");
  return {.rss_bytes = kib(keyed_integer(status, "VmRSS")),
          .peak_rss_bytes = kib(keyed_integer(status, "VmHWM")),
          .huge_page_bytes = kib(keyed_integer(rollup, "AnonHugePages"))};
}

std::optional<int64_t> available_memory(const SystemPaths& paths) {
  auto available = kib(keyed_integer(read_system_file(paths.proc + "/meminfo"), "MemAvailable"));
  for (const ControlGroup& group : control_groups(paths, "memory")) {
    const auto left = left_in_group(group);
    if (left && (!available || *left < *available)) available = left;
  }
  return available;
}

std::optional<double> steal_ms(const SystemPaths& paths) { return machine_time(paths).steal_ms; }

Probes sample_probes(const SystemPaths& paths) {
  Probes probes;
  // First, while the core still has the frequency of what it just did.
  probes.lowest_core_ghz = probes.highest_core_ghz = core_ghz();
  probes.wall_ms = ms_from_ns(now_ns());
  add_process_usage(probes);
  add_threads(paths, probes);
  const MachineTime machine = machine_time(paths);
  probes.machine_busy_ms = machine.busy_ms;
  probes.steal_ms = machine.steal_ms;
  probes.throttled_ms = throttled_ms(paths);
  probes.thermal_throttles = thermal_throttles(paths);
  return probes;
}

Probes operator-(const Probes& after, const Probes& before) { return combine(after, before, -1); }

Probes operator+(const Probes& a, const Probes& b) { return combine(a, b, 1); }

Json to_json(const Probes& probes) {
  Json json;
  for_each_probe([&](const char* name, auto member, Merge) {
    const auto& value = probes.*member;
    json[name] = value ? Json(*value) : Json();
  });
  return json;
}

Probes probes_from_json(const Json& json) {
  Probes probes;
  for_each_probe([&](const char* name, auto member, Merge) {
    const auto it = json.find(name);
    if (it == json.end() || it->is_null()) return;
    it->get_to((probes.*member).emplace());
  });
  return probes;
}

}  // namespace kvmark
