#include "bench/record/environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "bench/record/or_null.h"
#include "kvmark_version.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBusyLoad = 0.5;  // runnable tasks a core before we started

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of the first line "key : value" of `proc`/cpuinfo, "" where there is none.
std::string cpuinfo(const std::string& proc, std::string_view key) {
  std::ifstream file(proc + "/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string cpu_model() {
  const std::string proc = SystemPaths().proc;
  std::string model = cpuinfo(proc, "model name");
  if (model.empty()) model = cpuinfo(proc, "Model");  // boards with Arm cores
  return model;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::optional<int> allowed_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::nullopt;
  return CPU_COUNT(&set);
}

// The first number of a line, as in /proc/loadavg.
std::optional<double> leading_number(const std::string& line) {
  std::istringstream text(line);
  text.imbue(std::locale::classic());
  double value = 0;
  if (!(text >> value)) return std::nullopt;
  return value;
}

// The flag stands in the list of x86 processors; others do not say.
std::optional<bool> in_virtual_machine(const std::string& proc) {
  const std::string flags = cpuinfo(proc, "flags");
  if (flags.empty()) return std::nullopt;
  return fmt::format(" {} ", flags).find(" hypervisor ") != std::string::npos;
}

// The chosen one of "always [madvise] never" stands in brackets.
std::optional<bool> huge_pages_on_request(const std::string& line) {
  if (line.empty()) return std::nullopt;
  return line.find("[always]") != std::string::npos || line.find("[madvise]") != std::string::npos;
}

bool in_container() {
  std::error_code error;
  return std::filesystem::exists("/.dockerenv", error) ||
         std::filesystem::exists("/run/.containerenv", error) || std::getenv("container");
}

// Version 2: "quota period" or "max period"; version 1: a file each, and −1 for no quota.
std::optional<double> quota_of(const ControlGroup& group) {
  std::istringstream text(group.version2 ? first_line(group.folder / "cpu.max")
                                         : first_line(group.folder / "cpu.cfs_quota_us") + " " +
                                               first_line(group.folder / "cpu.cfs_period_us"));
  text.imbue(std::locale::classic());
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The tightest of the groups.
std::optional<double> cpu_quota(const SystemPaths& paths) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups(paths, "cpu")) {
    const auto quota = quota_of(group);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

// What the machine's state says against timings. A virtual machine alone is a fact (env.vm): what
// its host does to a row is seen in the row's probes.
std::vector<std::string> doubts_about(const MachineState& machine) {
  std::vector<std::string> doubts;
  if (machine.governor && *machine.governor != "performance") {
    doubts.push_back(fmt::format("CPU governor {}", *machine.governor));
  }
  if (machine.load && machine.cores && *machine.load > kBusyLoad * *machine.cores) {
    doubts.push_back(
        fmt::format("load {:.1f} on {} cores before the run", *machine.load, *machine.cores));
  }
  if (machine.cpu_quota && machine.cores && *machine.cpu_quota < *machine.cores) {
    doubts.push_back(fmt::format("CPU quota of {:.2g} cores", *machine.cpu_quota));
  }
  if (machine.blas_coretype) {
    doubts.push_back(
        fmt::format("OPENBLAS_CORETYPE={} may slow matrix products (level model) down; unset it",
                    *machine.blas_coretype));
  }
  return doubts;
}

}  // namespace

MachineState sample_machine(const SystemPaths& paths) {
  MachineState machine;
  machine.cores = allowed_cores();
  if (const auto kib = keyed_integer(read_system_file(paths.proc + "/meminfo"), "MemTotal")) {
    machine.memory_bytes = *kib << 10;
  }
  machine.load = leading_number(first_line(paths.proc + "/loadavg"));
  machine.cpu_quota = cpu_quota(paths);
  const std::string governor =
      first_line(paths.sys + "/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) machine.governor = governor;
  machine.huge_pages =
      huge_pages_on_request(first_line(paths.sys + "/kernel/mm/transparent_hugepage/enabled"));
  machine.vm = in_virtual_machine(paths.proc);
  if (const char* core = std::getenv("OPENBLAS_CORETYPE")) machine.blas_coretype = core;
  return machine;
}

Json build_identity() {
  return {{"git", text_or_null(KVMARK_GIT)}, {"compiler", compiler()}, {"flags", KVMARK_FLAGS}};
}

Json environment(const EnvironmentInput& input) {
  const MachineState& machine = input.machine;
  std::vector<std::string> unstable = input.unstable;
  for (std::string& doubt : doubts_about(machine)) unstable.push_back(std::move(doubt));

  utsname system{};
  const bool named = uname(&system) == 0;

  Json env = build_identity();
  env["os"] = named ? Json(fmt::format("{} {} {}", system.sysname, system.release, system.machine))
                    : Json();
  env["cpu"] = text_or_null(cpu_model());
  env["simd"] = text_or_null(input.simd);
  env["blas"] = text_or_null(input.blas);
  env["huge_pages"] = or_null(machine.huge_pages);
  env["cores"] = or_null(machine.cores);
  env["memory_bytes"] = or_null(machine.memory_bytes);
  env["governor"] = or_null(machine.governor);
  env["gpu"] = or_null(input.gpu);
  env["load"] = or_null(machine.load);
  env["container"] = in_container();
  env["vm"] = or_null(machine.vm);
  env["unstable"] = unstable;
  env["started"] = text_or_null(input.started);
  return env;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace kvmark
