#include "bench/record/counters.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// In the order of HardwareCounters::events_.
constexpr uint64_t kEvents[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
                                PERF_COUNT_HW_CACHE_MISSES};

// Of the calling thread and those that it starts, on whatever core; −1 with errno. Kernels let an
// unprivileged process count itself in user space only. Inherited events can't be read as a group
// on older kernels, so each stands alone and has times of its own.
int open_event(uint64_t event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.inherit = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::optional<EventReading> read_event(int fd) {
  uint64_t words[3];  // as read_format orders them
  if (fd < 0 || ::read(fd, words, sizeof words) != sizeof words) return {};
  return EventReading{words[0], words[1], words[2]};
}

std::optional<int> paranoid_setting(const SystemPaths& paths) {
  std::ifstream file(paths.proc + "/sys/kernel/perf_event_paranoid");
  int value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// One event between two readings, as if it had been counted all the time.
class Interval {
 public:
  Interval(const std::optional<EventReading>& before, const std::optional<EventReading>& after) {
    if (!before || !after || after->running_ns <= before->running_ns) return;
    const auto enabled = static_cast<double>(after->enabled_ns - before->enabled_ns);
    share_ = static_cast<double>(after->running_ns - before->running_ns) / enabled;
    count_ = static_cast<double>(after->value - before->value) / *share_;
  }
  const std::optional<double>& count() const { return count_; }
  const std::optional<double>& share() const { return share_; }

 private:
  std::optional<double> count_, share_;
};

}  // namespace

Counts operator-(const CounterReading& after, const CounterReading& before) {
  const Interval instructions(before.instructions, after.instructions);
  const Interval cycles(before.cycles, after.cycles);
  const Interval misses(before.cache_misses, after.cache_misses);
  Counts counts{instructions.count(), cycles.count(), misses.count(), {}};
  for (const Interval* event : {&instructions, &cycles, &misses}) {
    if (!event->share()) continue;
    counts.running_share = std::min(counts.running_share.value_or(1), *event->share());
  }
  return counts;
}

HardwareCounters::HardwareCounters(const SystemPaths& paths) {
  for (size_t i = 0; i < events_.size(); ++i) {
    events_[i] = open_event(kEvents[i]);
    if (events_[i] >= 0 || !missing_because_.empty()) continue;
    missing_because_ = why_no_counters(errno, paranoid_setting(paths));
  }
}

HardwareCounters::~HardwareCounters() {
  for (const int fd : events_) {
    if (fd >= 0) close(fd);
  }
}

CounterReading HardwareCounters::read() const {
  return {read_event(events_[0]), read_event(events_[1]), read_event(events_[2])};
}

std::string why_no_counters(int error, std::optional<int> paranoid) {
  constexpr int kUserSpaceForbidden = 3;  // Debian's and Ubuntu's levels beyond the kernel's own
  switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "the machine shows no such counters, as most virtual machines; `kvmark run --count` "
             "counts instructions under valgrind";
    case ENOSYS:
      return "this kernel has no perf_event_open";
    case EACCES:
    case EPERM:
      if (paranoid && *paranoid >= kUserSpaceForbidden) {
        return fmt::format(
            "kernel.perf_event_paranoid is {}; `sysctl kernel.perf_event_paranoid=2` "
            "lets a process count itself",
            *paranoid);
      }
      return "perf_event_open is forbidden here, as by a container's seccomp profile";
    default:
      return fmt::format("perf_event_open: {}", strerror(error));
  }
}

Json counters_json(const Counts& counts, int steps, const std::string& missing_because) {
  const auto per_step = [&](const std::optional<double>& count) {
    return count ? Json(*count / steps) : Json();
  };
  return {{"instructions_per_step", per_step(counts.instructions)},
          {"cycles_per_step", per_step(counts.cycles)},
          {"cache_misses_per_step", per_step(counts.cache_misses)},
          {"running_share", counts.running_share ? Json(*counts.running_share) : Json()},
          {"missing_because", missing_because.empty() ? Json() : Json(missing_because)}};
}

}  // namespace kvmark
