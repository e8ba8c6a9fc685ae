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

// The value of the first line "key : value" of /proc/cpuinfo, "" where there is none.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string cpu_model() {
  std::string model = cpuinfo("model name");
  if (model.empty()) model = cpuinfo("Model");  // boards with Arm cores
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

// Load average of the last minute.
std::optional<double> load() {
  double one = 0;
  if (getloadavg(&one, 1) != 1) return std::nullopt;
  return one;
}

bool in_virtual_machine() {
  return fmt::format(" {} ", cpuinfo("flags")).find(" hypervisor ") != std::string::npos;
}

bool in_container() {
  std::error_code error;
  return std::filesystem::exists("/.dockerenv", error) ||
         std::filesystem::exists("/run/.containerenv", error) || std::getenv("container");
}

// Cores' worth of time that the control group may use, version 2: "quota period" or "max period".
std::optional<double> cpu_quota() {
  std::istringstream text(first_line("/sys/fs/cgroup/cpu.max"));
  text.imbue(std::locale::classic());
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

Json environment(const EnvironmentInput& input) {
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  const std::optional<int> cores = allowed_cores();
  const std::optional<double> load_average = load();
  const std::optional<double> quota = cpu_quota();
  const bool vm = in_virtual_machine();

  std::vector<std::string> unstable = input.unstable;
  if (!governor.empty() && governor != "performance") {
    unstable.push_back(fmt::format("CPU governor {}", governor));
  }
  if (load_average && cores && *load_average > kBusyLoad * *cores) {
    unstable.push_back(fmt::format("load {:.1f} on {} cores", *load_average, *cores));
  }
  if (quota && cores && *quota < *cores) {
    unstable.push_back(fmt::format("CPU quota of {:.2g} cores", *quota));
  }
  if (vm) unstable.push_back("virtual machine");

  utsname system{};
  const bool named = uname(&system) == 0;

  Json env;
  env["git"] = text_or_null(KVMARK_GIT);
  env["compiler"] = compiler();
  env["flags"] = KVMARK_FLAGS;
  env["os"] = named ? Json(fmt::format("{} {} {}", system.sysname, system.release, system.machine))
                    : Json();
  env["cpu"] = text_or_null(cpu_model());
  env["simd"] = text_or_null(input.simd);
  env["huge_pages"] = value_or_null(input.huge_pages);
  env["cores"] = value_or_null(cores);
  env["governor"] = text_or_null(governor);
  env["gpu"] = value_or_null(input.gpu);
  env["load"] = value_or_null(load_average);
  env["container"] = in_container();
  env["vm"] = vm;
  env["unstable"] = unstable;
  env["started"] = utc_now();
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
