// What the operating system says about this process: memory, and what disturbed a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kvmark {

// Where the probes read; tests bring folders of their own.
struct SystemPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string sys = "/sys";
};

// Bytes of this process; nothing where the system does not tell.
struct ProcessMemory {
  std::optional<int64_t> rss_bytes;
  std::optional<int64_t> peak_rss_bytes;   // the highest so far
  std::optional<int64_t> huge_page_bytes;  // of the resident ones, in transparent huge pages
};
ProcessMemory process_memory(const SystemPaths& paths = {});

// Bytes that could still be taken without swapping: the machine's available memory, or what the
// memory limits of the control groups (versions 1 and 2, all ancestors) leave, where that is less.
// File cache that the kernel would give back counts as available.
std::optional<int64_t> available_memory(const SystemPaths& paths = {});

// Counters of this process, all threads together, since its start; nothing where not available.
struct Probes {
  std::optional<double> run_delay_ms;  // ready to run, but waiting for a core
  std::optional<int64_t> minor_faults;
  std::optional<int64_t> major_faults;
  std::optional<int64_t> voluntary_switches;
  std::optional<int64_t> involuntary_switches;
  std::optional<int64_t> migrations;  // between cores
};
Probes sample_probes(const SystemPaths& paths = {});

// Time since the machine's start that its processors were ready to run but the host gave them to
// others, all processors together; nothing where the system does not tell.
std::optional<double> steal_ms(const SystemPaths& paths = {});

// What happened between two samples, and the sum of two such stretches: each figure is left out
// where either side lacks it.
Probes operator-(const Probes& after, const Probes& before);
Probes operator+(const Probes& a, const Probes& b);

// The "probes" object of the worker protocol and of the record.
nlohmann::ordered_json to_json(const Probes& probes);
// Reads such an object; missing keys and nulls are left out.
Probes probes_from_json(const nlohmann::ordered_json& json);

}  // namespace kvmark
