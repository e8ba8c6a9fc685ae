// What the system says about the machine; nothing is measured and nothing judged here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/record/environment.h"
#include "bench/record/probes.h"

namespace kvmark {

struct CacheLevel {
  int level;      // 1, 2, 3
  int64_t bytes;  // of one such cache; of the first level the data's
  int cpus;       // that share it
};

// What cannot be found out is left out.
struct MachineFacts {
  MachineState state;  // cores, load, governor, …: what records hold too
  std::optional<std::string> processor;
  std::optional<int> cpus_present;
  std::optional<int> physical_cores;  // behind the CPUs that this process may use
  std::optional<int> numa_nodes;      // with such CPUs
  std::vector<std::string> isa;       // of what the kernels could use, as the kernel calls it
  std::vector<CacheLevel> caches;     // of the first allowed CPU, ascending
  std::optional<bool> turbo;          // the clock may go above its nominal rate
  std::optional<double> max_frequency_ghz;
  std::optional<std::string> huge_pages;        // always, madvise, never
  std::optional<std::string> huge_page_defrag;  // the same, and defer, defer+madvise
  std::optional<int64_t> swap_used_bytes;
  std::optional<int64_t> memory_limit_bytes;  // of the tightest control group
  std::optional<std::string> clock_source;
  std::optional<int> perf_event_paranoid;
  std::optional<bool> counters;  // the processor's event counters are there
};

// `cpus`: those that the process may use, ascending.
MachineFacts look_at_machine(const SystemPaths& paths, const std::vector<int>& cpus);

}  // namespace kvmark
