#include "bench/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bench/record/clock.h"
#include "bench/record/environment.h"
#include "bench/run/plots.h"
#include "engines/codecs/simd.h"
#include "engines/core/affinity.h"
#include "engines/cpu/cpu_backend.h"

namespace kvmark {
namespace {

// Before anything of ours loads the machine.
Diagnosis look() {
  Diagnosis d;
  d.machine = look_at_machine({}, allowed_cpus());
  const auto env = environment({});
  d.build =
      fmt::format("{}, {}", env["compiler"].get<std::string>(), env["flags"].get<std::string>());
#ifndef __OPTIMIZE__
  d.optimized = false;
#endif
  d.container = env["container"];
  d.simd_in_use = simd_target();
  for (const int64_t target : simd_targets()) d.simd_targets.emplace_back(hwy::TargetName(target));
  d.blas = blas_core();
  d.plots = plotting_python().has_value();
  return d;
}

}  // namespace

Diagnosis diagnose(std::ostream& err) {
  const auto now = [&](const std::string& what) { err << "doctor: " << what << std::endl; };
  now("looking at the machine");
  Diagnosis d = look();
  const int cores = std::max<int>(1, std::ssize(allowed_cpus()));
  const Probes before = sample_probes();

  now("the clock and the harness");
  d.clock = measure_clock();
  const Case c = quickstart_case(cores);
  d.harness = measure_harness_cost(c);

  now("the noise floor");
  d.noise = measure_noise({"kvmark", own_worker_command()}, c);

  const std::vector<int> threads = thread_counts(cores);
  now("reading memory");
  d.reads = measure_reads(read_sizes(d.machine.caches, available_memory()), threads);
  now("arithmetic");
  d.fma = measure_fma(threads);

  d.probes = sample_probes() - before;
  return d;
}

}  // namespace kvmark
