#include "bench/run/callgrind.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engines/core/split.h"

namespace kvmark {
namespace {

bool in_path(const std::string& program) {
  const char* path = getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':')) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

void check_valgrind() {
  if (in_path("valgrind")) return;
  throw UsageError(
      "counting runs the worker under valgrind, which is not in PATH; install it (Debian and "
      "Ubuntu: apt-get install valgrind), or leave --count out to measure times");
}

WorkerCommand under_callgrind(const WorkerCommand& command, const std::string& counts) {
  std::string file;  // %p and the like are valgrind's
  for (const char c : counts) file += c == '%' ? "%%" : std::string(1, c);
  // Functions of libraries are looked up at the start, not in a counted step.
  WorkerCommand counted = {"env",
                           "LD_BIND_NOW=1",
                           "KVMARK_SIMD=AVX2",
                           "OPENBLAS_CORETYPE=Haswell",
                           "valgrind",
                           "--quiet",
                           "--tool=callgrind",
                           "--callgrind-out-file=" + file,
                           fmt::format("--toggle-collect={}(*", kCountedFunction)};
  counted.insert(counted.end(), command.begin(), command.end());
  return counted;
}

int64_t read_callgrind(const std::string& counts) {
  std::ifstream file(counts);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t total = 0;  // of the first event, which is always Ir: instructions
    if (words >> key && key == "totals:" && words >> total && total > 0) return total;
  }
  throw WorkerFailed(
      fmt::format("{}: callgrind counted no instructions; a stripped program does "
                  "not show it where {} begins",
                  counts, kCountedFunction));
}

}  // namespace kvmark
