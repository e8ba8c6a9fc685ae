// What the operating system says about this process: memory, and what disturbed a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/record/system_files.h"

namespace kvmark {

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

// What disturbs a measurement. A sample holds counts since the start of the process or of the
// machine, and the frequency of this moment; the difference of two samples what happened between
// them. Nothing where the system does not tell.
struct Probes {
  // Of this process, all threads together.
  std::optional<double> wall_ms;
  std::optional<double> cpu_ms;        // on a core
  std::optional<double> run_delay_ms;  // ready to run, but waiting for a core
  std::optional<int64_t> minor_faults;
  std::optional<int64_t> major_faults;
  std::optional<int64_t> voluntary_switches;
  std::optional<int64_t> involuntary_switches;
  std::optional<int64_t> migrations;  // between cores
  // Of the machine, all cores together; the first two are counted in ticks of mostly 10 ms.
  std::optional<double> machine_busy_ms;  // on anything, this process included
  std::optional<double> steal_ms;         // ready to run, but the host gave the core to others
  std::optional<double> throttled_ms;     // a control group of this process had used up its quota
  std::optional<int64_t> thermal_throttles;
  // Of the core that the sample was taken on, as core_ghz() measures it.
  std::optional<double> lowest_core_ghz;
  std::optional<double> highest_core_ghz;
};

// Takes some 50 µs here, more with many threads or cores.
Probes sample_probes(const SystemPaths& paths = {});

// Time since the machine's start that its processors were ready to run but the host gave them to
// others, all processors together; nothing where the system does not tell.
std::optional<double> steal_ms(const SystemPaths& paths = {});

// What happened between two samples, and the sum of two such stretches: each figure is left out
// where either side lacks it. Of frequencies the lowest and the highest of both sides remain.
Probes operator-(const Probes& after, const Probes& before);
Probes operator+(const Probes& a, const Probes& b);

// The "probes" object of the worker protocol and of the record.
nlohmann::ordered_json to_json(const Probes& probes);
// Reads such an object; missing keys and nulls are left out.
Probes probes_from_json(const nlohmann::ordered_json& json);

}  // namespace kvmark
