#include "bench/doctor/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "bench/doctor/system_files.h"
#include "engines/core/split.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// x86 flags and Arm features that a kernel of ours, or one to come, is written for.
constexpr std::array kIsa = {"avx2",        "avx512f",  "avx_vnni", "avx512_vnni",
                             "avx512_bf16", "amx_int8", "amx_bf16", "asimddp",
                             "i8mm",        "bf16",     "sve"};

fs::path cpu_folder(const SystemPaths& paths, int cpu) {
  return fs::path(paths.sys) / fmt::format("devices/system/cpu/cpu{}", cpu);
}

std::optional<std::string> cpuinfo(const SystemPaths& paths, std::string_view key) {
  return keyed_text(file_text(paths.proc + "/cpuinfo"), key);
}

std::optional<std::string> processor(const SystemPaths& paths) {
  const auto name = cpuinfo(paths, "model name");
  return name ? name : cpuinfo(paths, "Model");  // boards with Arm cores
}

std::vector<std::string> isa(const SystemPaths& paths) {
  auto flags = cpuinfo(paths, "flags");
  if (!flags) flags = cpuinfo(paths, "Features");
  const std::vector<std::string> have = split(flags.value_or(""), ' ');
  std::vector<std::string> found;
  for (const char* name : kIsa) {
    if (std::find(have.begin(), have.end(), name) != have.end()) found.emplace_back(name);
  }
  return found;
}

// Hardware threads of one core have the same list of siblings.
std::optional<int> physical_cores(const SystemPaths& paths, const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const auto siblings = file_line(cpu_folder(paths, cpu) / "topology/thread_siblings_list");
    if (!siblings) return std::nullopt;
    cores.insert(*siblings);
  }
  return cores.empty() ? std::nullopt : std::optional(static_cast<int>(cores.size()));
}

std::optional<int> numa_nodes(const SystemPaths& paths, const std::vector<int>& cpus) {
  int nodes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(paths.sys + "/devices/system/node", error)) {
    const auto list = file_line(entry.path() / "cpulist");
    if (!list) continue;
    const std::vector<int> here = parse_cpu_list(*list);
    nodes += std::find_first_of(here.begin(), here.end(), cpus.begin(), cpus.end()) != here.end();
  }
  return nodes > 0 ? std::optional(nodes) : std::nullopt;
}

// "48K", "32768K", "36M".
std::optional<int64_t> size_in_bytes(const std::optional<std::string>& text) {
  const auto value = text ? leading_integer(*text) : std::nullopt;
  if (!value) return std::nullopt;
  switch (text->back()) {
    case 'K':
      return *value << 10;
    case 'M':
      return *value << 20;
    case 'G':
      return *value << 30;
    default:
      return value;
  }
}

std::vector<CacheLevel> caches(const SystemPaths& paths, int cpu) {
  std::vector<CacheLevel> levels;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cpu_folder(paths, cpu) / "cache", error)) {
    const auto level = file_integer(entry.path() / "level");
    const auto bytes = size_in_bytes(file_line(entry.path() / "size"));
    if (!level || !bytes || file_line(entry.path() / "type") == "Instruction") continue;
    const auto shared = parse_cpu_list(file_line(entry.path() / "shared_cpu_list").value_or(""));
    levels.push_back({static_cast<int>(*level), *bytes, std::max<int>(1, shared.size())});
  }
  std::sort(levels.begin(), levels.end(),
            [](const CacheLevel& a, const CacheLevel& b) { return a.level < b.level; });
  return levels;
}

std::optional<bool> turbo(const SystemPaths& paths) {
  const fs::path cpu = fs::path(paths.sys) / "devices/system/cpu";
  if (const auto off = file_integer(cpu / "intel_pstate/no_turbo")) return *off == 0;
  if (const auto on = file_integer(cpu / "cpufreq/boost")) return *on != 0;
  return std::nullopt;
}

std::optional<double> mhz_of(std::optional<int64_t> khz) {
  return khz ? std::optional(static_cast<double>(*khz) * 1e-3) : std::nullopt;
}

std::optional<double> frequency_mhz(const SystemPaths& paths, int cpu) {
  if (auto mhz = mhz_of(file_integer(cpu_folder(paths, cpu) / "cpufreq/scaling_cur_freq"))) {
    return mhz;
  }
  const auto text = cpuinfo(paths, "cpu MHz");
  return text ? std::optional(std::strtod(text->c_str(), nullptr)) : std::nullopt;
}

// The counters of the processor are an event source of their own, under names that differ.
std::optional<bool> has_counters(const SystemPaths& paths) {
  std::error_code error;
  const fs::directory_iterator sources(paths.sys + "/bus/event_source/devices", error);
  if (error) return std::nullopt;
  return std::any_of(begin(sources), end(sources), [](const auto& source) {
    const std::string name = source.path().filename().string();
    return name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv8");
  });
}

std::optional<int64_t> kib_of(std::optional<int64_t> kib) {
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace

MachineFacts look_at_machine(const SystemPaths& paths, const std::vector<int>& cpus) {
  const int first_cpu = cpus.empty() ? 0 : cpus.front();
  const fs::path sys = paths.sys;
  MachineFacts facts;
  facts.state = sample_machine(paths);
  facts.processor = processor(paths);
  if (const auto present = file_line(sys / "devices/system/cpu/present")) {
    facts.cpus_present = static_cast<int>(parse_cpu_list(*present).size());
  }
  facts.physical_cores = physical_cores(paths, cpus);
  facts.numa_nodes = numa_nodes(paths, cpus);
  facts.isa = isa(paths);
  facts.caches = caches(paths, first_cpu);
  facts.turbo = turbo(paths);
  facts.frequency_mhz = frequency_mhz(paths, first_cpu);
  facts.max_frequency_mhz =
      mhz_of(file_integer(cpu_folder(paths, first_cpu) / "cpufreq/cpuinfo_max_freq"));
  facts.huge_pages = bracketed(file_line(sys / "kernel/mm/transparent_hugepage/enabled"));
  facts.huge_page_defrag = bracketed(file_line(sys / "kernel/mm/transparent_hugepage/defrag"));
  const auto meminfo = file_text(paths.proc + "/meminfo");
  facts.memory_bytes = kib_of(keyed_integer(meminfo, "MemTotal"));
  const auto swap = kib_of(keyed_integer(meminfo, "SwapTotal"));
  const auto swap_free = kib_of(keyed_integer(meminfo, "SwapFree"));
  if (swap && swap_free) facts.swap_used_bytes = *swap - *swap_free;
  facts.limits = group_limits(paths);
  facts.clock_source =
      file_line(sys / "devices/system/clocksource/clocksource0/current_clocksource");
  if (const auto level = file_integer(paths.proc + "/sys/kernel/perf_event_paranoid")) {
    facts.perf_event_paranoid = static_cast<int>(*level);
  }
  facts.counters = has_counters(paths);
  return facts;
}

}  // namespace kvmark
