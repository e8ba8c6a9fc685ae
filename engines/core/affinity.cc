#include "engines/core/affinity.h"

#include "engines/core/check.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace kvmark {

#ifdef __linux__

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

bool set_allowed_cpus(std::thread::native_handle_type thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    check(cpu >= 0 && cpu < CPU_SETSIZE, "CPU {}: expected 0 to {}", cpu, CPU_SETSIZE - 1);
    CPU_SET(cpu, &set);
  }
  return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

#else

std::vector<int> allowed_cpus() { return {}; }

bool set_allowed_cpus(std::thread::native_handle_type, std::span<const int>) { return false; }

#endif

}  // namespace kvmark
