// Which CPUs a thread may run on.
#pragma once

#include <span>
#include <thread>
#include <vector>

namespace kvmark {

// CPUs that the calling thread may run on, ascending; empty where the system does not say.
std::vector<int> allowed_cpus();

// Lets a running thread run on `cpus` only. False, and nothing changed, where the system refuses or
// has no such call (Linux has one).
bool set_allowed_cpus(std::thread::native_handle_type thread, std::span<const int> cpus);

}  // namespace kvmark
