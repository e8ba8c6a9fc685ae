#include "bench/doctor/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "bench/record/system_files.h"
#include "engines/core/split.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// x86 flags and Arm features that a kernel of ours, or one to come, is written for.
constexpr std::array kIsa = {"avx2",        "avx512f",  "avx_vnni", "avx512_vnni",
                             "avx512_bf16", "amx_int8", "amx_bf16", "asimddp",
                             "i8mm",        "bf16",     "sve"};

// The first line of a file; nothing where that is empty or there is no file.
std::optional<std::string> file_line(const fs::path& path) {
  const std::string text = read_system_file(path);
  const std::string line = text.substr(0, text.find('\n'));
  return line.empty() ? std::nullopt : std::optional(line);
}

std::optional<int64_t> file_integer(const fs::path& path) {
  return leading_integer(read_system_file(path));
}

// "0-2,5" → {0, 1, 2, 5}, as the kernel lists processors.
std::vector<int> cpu_list(const std::optional<std::string>& text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text.value_or(""), ',')) {
    const auto first = leading_integer(part);
    if (!first) continue;
    const size_t dash = part.find('-');
    const auto last = dash == std::string::npos
                          ? first
                          : leading_integer(std::string_view(part).substr(dash + 1));
    for (int64_t cpu = *first; last && cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

// The chosen word of "always [madvise] never".
std::optional<std::string> bracketed(const std::optional<std::string>& line) {
  if (!line) return std::nullopt;
  const size_t open = line->find('['), close = line->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return line->substr(open + 1, close - open - 1);
}

fs::path cpu_folder(const SystemPaths& paths, int cpu) {
  return fs::path(paths.sys) / fmt::format("devices/system/cpu/cpu{}", cpu);
}

// The value of the first line "key : value".
std::optional<std::string> cpuinfo(const SystemPaths& paths, std::string_view key) {
  for (const std::string& line : split(read_system_file(paths.proc + "/cpuinfo"), '\n')) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t:", key.size());
    if (value != key.size() && value != std::string::npos) return line.substr(value);
  }
  return std::nullopt;
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
    const std::vector<int> here = cpu_list(file_line(entry.path() / "cpulist"));
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
    const auto shared = cpu_list(file_line(entry.path() / "shared_cpu_list"));
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

// "max" and version 1's number beyond all memory are no limits.
std::optional<int64_t> memory_limit(const SystemPaths& paths, std::optional<int64_t> memory_bytes) {
  std::optional<int64_t> least;
  for (const ControlGroup& group : control_groups(paths, "memory")) {
    const auto limit =
        file_integer(group.folder / (group.version2 ? "memory.max" : "memory.limit_in_bytes"));
    if (!limit || (memory_bytes && *limit >= *memory_bytes)) continue;
    least = std::min(least.value_or(*limit), *limit);
  }
  return least;
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
  const auto present = file_line(sys / "devices/system/cpu/present");
  if (present) facts.cpus_present = static_cast<int>(cpu_list(present).size());
  facts.physical_cores = physical_cores(paths, cpus);
  facts.numa_nodes = numa_nodes(paths, cpus);
  facts.isa = isa(paths);
  facts.caches = caches(paths, first_cpu);
  facts.turbo = turbo(paths);
  if (const auto khz = file_integer(cpu_folder(paths, first_cpu) / "cpufreq/cpuinfo_max_freq")) {
    facts.max_frequency_ghz = static_cast<double>(*khz) * 1e-6;
  }
  facts.huge_pages = bracketed(file_line(sys / "kernel/mm/transparent_hugepage/enabled"));
  facts.huge_page_defrag = bracketed(file_line(sys / "kernel/mm/transparent_hugepage/defrag"));
  const std::string meminfo = read_system_file(paths.proc + "/meminfo");
  const auto swap = kib_of(keyed_integer(meminfo, "SwapTotal"));
  const auto swap_free = kib_of(keyed_integer(meminfo, "SwapFree"));
  if (swap && swap_free) facts.swap_used_bytes = *swap - *swap_free;
  facts.memory_limit_bytes = memory_limit(paths, facts.state.memory_bytes);
  facts.clock_source =
      file_line(sys / "devices/system/clocksource/clocksource0/current_clocksource");
  if (const auto level = file_integer(paths.proc + "/sys/kernel/perf_event_paranoid")) {
    facts.perf_event_paranoid = static_cast<int>(*level);
  }
  facts.counters = has_counters(paths);
  return facts;
}

}  // namespace kvmark
