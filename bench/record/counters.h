// Hardware counters of this process's threads, through Linux's perf_event_open.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/record/probes.h"

namespace kvmark {

// One event as the kernel gives it. With more events than counters they take turns: `running_ns` is
// the part of `enabled_ns` in which this one was counted. Sums over threads.
struct EventReading {
  uint64_t value = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

// All events at one moment; those that cannot be counted are left out.
struct CounterReading {
  std::optional<EventReading> instructions, cycles, cache_misses;
};

// What was counted between two readings, in user space; scaled up to the whole time.
struct Counts {
  std::optional<double> instructions, cycles;
  std::optional<double> cache_misses;   // in the last-level cache
  std::optional<double> running_share;  // of the time, of the event that was counted least
};
Counts operator-(const CounterReading& after, const CounterReading& before);

// Counts from its construction on, in the thread that makes it and in all that this one starts
// later.
class HardwareCounters {
 public:
  explicit HardwareCounters(const SystemPaths& paths = {});
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  CounterReading read() const;  // a system call an event
  // Why an event is left out; "" where all are there.
  const std::string& missing_because() const { return missing_because_; }

 private:
  std::array<int, 3> events_;  // file descriptors, −1: not there
  std::string missing_because_;
};

// In words for a person: why perf_event_open failed with `error` (an errno) where the kernel's
// setting kernel.perf_event_paranoid is `paranoid` (nothing: unknown).
std::string why_no_counters(int error, std::optional<int> paranoid);

// The "counters" object of the worker protocol, for `counts` taken over `steps` ≥ 1.
nlohmann::ordered_json counters_json(const Counts& counts, int steps,
                                     const std::string& missing_because);

}  // namespace kvmark
