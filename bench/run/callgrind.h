// Workers under valgrind's callgrind, which counts the instructions of the timed steps.
#pragma once

#include <cstdint>
#include <string>

#include "bench/run/process.h"

namespace kvmark {

// Throws UsageError that says what to install where there is no valgrind in PATH.
void check_valgrind();

// The command that runs the worker `command` with AVX2 kernels under callgrind, which writes its
// counts to the file `counts` when the worker exits. Counting is on inside kCountedFunction alone,
// and only in the thread that calls it: valgrind follows its entry and exit, so no header of
// valgrind's is needed, and a build counts whether or not valgrind was there when it was made.
WorkerCommand under_callgrind(const WorkerCommand& command, const std::string& counts);

// Workload's function around a timed step; it is never inlined.
inline constexpr const char* kCountedFunction = "kvmark::Workload::timed_step";

// Instructions in all, from such a file. Throws WorkerFailed that names the file where it holds
// none.
int64_t read_callgrind(const std::string& counts);

}  // namespace kvmark
