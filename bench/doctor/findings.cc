#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/doctor/diagnosis.h"
#include "bench/gate/selftest.h"
#include "bench/report/format.h"
#include "bench/report/report.h"

namespace kvmark {
namespace {

constexpr auto note = Severity::note;
constexpr auto warn = Severity::warn;
constexpr const char* kUnseen = "not visible here";

constexpr double kBusyLoad = 0.5;       // runnable tasks a core, as records hold against timings
constexpr double kStealNote = 0.005;    // of all CPUs' time
constexpr double kStealWarn = 0.02;     // as the gate calls a visit disturbed
constexpr double kSlowClockNs = 200;    // no clock that is read without a system call takes that
constexpr double kHarnessShare = 0.01;  // of a step
constexpr double kWorkerStartMs = 300;
constexpr double kUsableSlowdown = 0.10;  // what separate runs can tell without history
constexpr int64_t kLittleMemory = int64_t{4} << 30;
constexpr int kParanoidUser = 2;  // up to here a process may count its own events
constexpr int kMostPairs = 48, kFewPairs = 24;

std::string percent(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0);
}

std::string plural(int n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

MachineFinding build(const Diagnosis& d) {
  MachineFinding f{"build", d.build};
  if (d.optimized) return f;
  return {f.name, f.found, warn, "build for speed: `cmake --preset release`, or `make`"};
}

MachineFinding cores(const Diagnosis& d) {
  const auto allowed = d.machine.state.cores, present = d.machine.cpus_present;
  if (!allowed) return {"cores", kUnseen};
  std::string found = plural(*allowed, "CPU");
  if (!present || *present <= *allowed) return {"cores", found + ", all that there are"};
  found += fmt::format(" of {} may be used (taskset, cpuset)", *present);
  return {"cores", found, note,
          "the others' work still shares cache and memory with yours: keep them idle too"};
}

MachineFinding smt(const Diagnosis& d) {
  const auto cpus = d.machine.state.cores, cores = d.machine.physical_cores;
  if (!cpus || !cores) return {"smt", kUnseen};
  if (*cores >= *cpus) return {"smt", "no two of these CPUs share a core"};
  return {
      "smt", fmt::format("{} on {}", plural(*cpus, "CPU"), plural(*cores, "core")), note,
      fmt::format("two threads on one core slow each other: measure with `--threads {}`", *cores)};
}

MachineFinding numa(const Diagnosis& d) {
  const auto nodes = d.machine.numa_nodes;
  if (!nodes) return {"numa", kUnseen};
  if (*nodes == 1) return {"numa", "one node"};
  return {"numa", plural(*nodes, "node"), warn,
          "memory may lie at the far node: stay on one, `numactl --cpunodebind=0 --membind=0 "
          "kvmark …`"};
}

MachineFinding simd(const Diagnosis& d) {
  std::string found = d.simd_in_use + " in use";
  if (!d.machine.isa.empty()) found += fmt::format(" ({})", fmt::join(d.machine.isa, ", "));
  if (d.simd_targets.empty() || d.simd_in_use == d.simd_targets.front()) return {"simd", found};
  return {"simd", found, note,
          fmt::format("KVMARK_SIMD asks for it; unset it for {}", d.simd_targets.front())};
}

MachineFinding caches(const Diagnosis& d) {
  if (d.machine.caches.empty()) return {"caches", kUnseen};
  std::string found;
  for (const CacheLevel& cache : d.machine.caches) {
    found += fmt::format("{}L{} {}", found.empty() ? "" : ", ", cache.level,
                         human_bytes(static_cast<double>(cache.bytes)));
    if (cache.cpus > 1) found += fmt::format(" shared by {}", cache.cpus);
  }
  return {"caches", found};
}

MachineFinding governor(const Diagnosis& d) {
  const auto& governor = d.machine.state.governor;
  if (!governor) return {"governor", kUnseen};
  if (*governor == "performance") return {"governor", *governor};
  return {"governor", *governor, warn,
          "the clock follows the load: `sudo cpupower frequency-set -g performance`"};
}

MachineFinding turbo(const Diagnosis& d) {
  if (!d.machine.turbo) return {"turbo", kUnseen};
  if (!*d.machine.turbo) return {"turbo", "off"};
  return {"turbo", "on", note,
          "the clock depends on heat and on other cores; for small differences switch it off "
          "(/sys/devices/system/cpu: intel_pstate/no_turbo or cpufreq/boost)"};
}

MachineFinding frequency(const Diagnosis& d) {
  const auto low = d.probes.lowest_core_ghz, high = d.probes.highest_core_ghz;
  if (!low || !high) return {"frequency", kUnseen};
  std::string found = fmt::format("{:.2f} to {:.2f} GHz measured", *low, *high);
  if (const auto most = d.machine.max_frequency_ghz)
    found += fmt::format(", {:.2f} at most", *most);
  return {"frequency", found};
}

MachineFinding huge_pages(const Diagnosis& d) {
  const auto& pages = d.machine.huge_pages;
  if (!pages) return {"huge_pages", kUnseen};
  std::string found = *pages;
  if (d.machine.huge_page_defrag) found += ", defrag " + *d.machine.huge_page_defrag;
  if (*pages != "never") return {"huge_pages", found};
  return {"huge_pages", found, warn,
          "caches lie in 4 KiB pages, which reads slower and less evenly: `echo madvise | sudo tee "
          "/sys/kernel/mm/transparent_hugepage/enabled`"};
}

MachineFinding load(const Diagnosis& d) {
  const auto load = d.machine.state.load;
  const auto cores = d.machine.state.cores;
  if (!load || !cores) return {"load", kUnseen};
  const std::string found = fmt::format("{:.1f} on {} before this", *load, plural(*cores, "CPU"));
  if (*load <= kBusyLoad * *cores) return {"load", found};
  return {"load", found, warn,
          "something else computes: `ps -eo pcpu,pid,comm --sort=-pcpu | head`; wait or stop it"};
}

MachineFinding steal(const Diagnosis& d) {
  const auto share = steal_share(d);
  if (!share) return {"steal", kUnseen};
  const std::string found = percent(*share) + " of all CPUs' time while measuring";
  if (*share < kStealNote) return {"steal", found};
  return {"steal", found, *share < kStealWarn ? note : warn,
          "the host gave the time to other machines: take a larger or dedicated one, or measure "
          "at another hour"};
}

MachineFinding cpu_quota(const Diagnosis& d) {
  const auto quota = d.machine.state.cpu_quota;
  const auto cores = d.machine.state.cores;
  std::string found = quota ? fmt::format("{:.3g} CPUs' worth of time", *quota) : "none";
  const double stopped_ms = d.probes.throttled_ms.value_or(0);
  if (stopped_ms > 0) found += fmt::format(", stopped for {:.0f} ms while measuring", stopped_ms);
  if (stopped_ms == 0 && (!quota || !cores || *quota >= *cores)) return {"cpu_quota", found};
  const int threads = quota ? std::max(1, static_cast<int>(*quota)) : 1;
  return {"cpu_quota", found, warn,
          fmt::format("threads are stopped in mid-step: raise the limit (docker: --cpus), or "
                      "measure with `--threads {}`",
                      threads)};
}

MachineFinding memory(const Diagnosis& d) {
  auto bytes = d.machine.state.memory_bytes;
  std::string found = bytes ? human_bytes(static_cast<double>(*bytes)) : kUnseen;
  if (const auto limit = d.machine.memory_limit_bytes) {
    found += fmt::format(", the group's limit is {}", human_bytes(static_cast<double>(*limit)));
    bytes = std::min(bytes.value_or(*limit), *limit);
  }
  if (!bytes || *bytes >= kLittleMemory) return {"memory", found};
  return {"memory", found, note, "cases that need more are rows `skipped`"};
}

MachineFinding swap(const Diagnosis& d) {
  if (!d.machine.swap_used_bytes) return {"swap", kUnseen};
  if (*d.machine.swap_used_bytes == 0) return {"swap", "none in use"};
  return {"swap", human_bytes(static_cast<double>(*d.machine.swap_used_bytes)) + " in use", note,
          "memory was short: what was swapped out comes back in somebody's step; `sudo swapoff -a` "
          "while measuring"};
}

MachineFinding container(const Diagnosis& d) {
  return {"container", d.container ? "in a container" : "no container seen"};
}

MachineFinding vm(const Diagnosis& d) {
  if (!d.machine.state.vm) return {"vm", kUnseen};
  if (!*d.machine.state.vm) return {"vm", "none"};
  return {"vm", "a virtual machine", note,
          "neighbours share its caches and memory, unseen from here: trust the noise floor below, "
          "and gate by turns of both builds (`kvmark ab`)"};
}

MachineFinding clock(const Diagnosis& d) {
  const auto& source = d.machine.clock_source;
  const std::string found = fmt::format("{}; a read takes {:.0f} ns, steps of {:.0f} ns are told",
                                        source ? *source : "source not visible",
                                        d.clock.overhead_ns, d.clock.resolution_ns);
  if (d.clock.overhead_ns <= kSlowClockNs) return {"clock", found};
  return {"clock", found, warn,
          "reading it is a system call: boot with clocksource=tsc where the processor's is steady"};
}

MachineFinding counters(const Diagnosis& d) {
  const auto paranoid = d.machine.perf_event_paranoid;
  if (!paranoid) return {"counters", kUnseen};
  const std::string level = fmt::format("perf_event_paranoid {}", *paranoid);
  constexpr const char* kInstead = "`kvmark run --count` counts instructions without them";
  if (d.machine.counters == false) {
    return {"counters", level + ", but this machine shows no counters", note, kInstead};
  }
  if (*paranoid > kParanoidUser) {
    return {"counters", level + ": not for this user", note,
            fmt::format("`sudo sysctl kernel.perf_event_paranoid=2`; {}", kInstead)};
  }
  return {"counters", level + ": readable"};
}

MachineFinding blas(const Diagnosis& d) {
  const std::string found = fmt::format("OpenBLAS with kernels for {}", d.blas);
  const auto& forced = d.machine.state.blas_coretype;
  if (!forced) return {"blas", found};
  return {"blas", fmt::format("{}, as OPENBLAS_CORETYPE={} asks", found, *forced), warn,
          "matrix products may be half as fast: `unset OPENBLAS_CORETYPE`"};
}

MachineFinding plots(const Diagnosis& d) {
  if (d.plots) return {"plots", "python3 with matplotlib"};
  return {"plots", "no python3 with matplotlib", note,
          "runs draw no plots; `sudo apt-get install python3-matplotlib`"};
}

MachineFinding harness(const Diagnosis& d) {
  const HarnessCost& h = d.harness;
  const std::string found = fmt::format(
      "{:.1f} % ({:.1f} to {:.1f} %) of a step of {} ms at the quickstart's shape, {} clock reads",
      100 * h.share, 100 * h.share_ci95[0], 100 * h.share_ci95[1], human_number(h.step_ms),
      h.clock_reads);
  if (h.share_ci95[1] < kHarnessShare) return {"harness", found};
  if (h.share_ci95[0] < kHarnessShare) {
    return {"harness", found, note,
            "too unsteady here to tell whether it is under 1 %: ask again when the machine is "
            "quiet"};
  }
  return {"harness", found, warn, "steps as short as this look longer than they are"};
}

MachineFinding noise(const Diagnosis& d) {
  const NoiseFloor& n = d.noise;
  if (!n.visit_sigma) {
    return {"noise", fmt::format("unknown: {}", n.missing_because.value_or("not measured")), warn,
            "`kvmark run configs/smoke.yaml` shows what goes wrong"};
  }
  std::string found =
      fmt::format("visit σ {}, with drift {} ({}, {} repeated)", percent(*n.visit_sigma),
                  percent(*n.sigma_with_drift), plural(n.visits, "visit"), n.repeated);
  if (*n.visit_sigma <= kPromisedSigma) return {"noise", found};
  return {"noise", found, warn,
          fmt::format("the gate promises 5 % only up to {}: mend what stands above, or take a "
                      "quieter machine",
                      percent(kPromisedSigma))};
}

MachineFinding worker(const Diagnosis& d) {
  const auto& start_ms = d.noise.worker_start_ms;
  if (!start_ms) return {"worker", "unknown: no visit came through"};
  const std::string found = fmt::format(
      "ready for its first step {:.0f} ms after its start, weights of the quickstart's shape "
      "included",
      *start_ms);
  if (*start_ms <= kWorkerStartMs) return {"worker", found};
  return {"worker", found, note, "every case costs that once, a visit of the gate each time"};
}

constexpr std::array kJudges = {noise,      load,   steal,    cpu_quota, governor,  turbo,
                                frequency,  cores,  smt,      numa,      simd,      caches,
                                huge_pages, memory, swap,     vm,        container, clock,
                                harness,    worker, counters, blas,      plots,     build};

}  // namespace

std::string_view severity_name(Severity severity) {
  constexpr std::array<std::string_view, 3> kNames = {"fine", "note", "warn"};
  return kNames[static_cast<int>(severity)];
}

std::vector<MachineFinding> judge(const Diagnosis& diagnosis) {
  std::vector<MachineFinding> findings;
  for (const auto look : kJudges) findings.push_back(look(diagnosis));
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const MachineFinding& a, const MachineFinding& b) { return a.severity > b.severity; });
  return findings;
}

std::optional<double> steal_share(const Diagnosis& d) {
  const auto stolen = d.probes.steal_ms, wall = d.probes.wall_ms;
  const auto cpus = d.machine.cpus_present ? d.machine.cpus_present : d.machine.state.cores;
  if (!stolen || !wall || !cpus || *wall <= 0) return std::nullopt;
  return *stolen / (*wall * *cpus);
}

std::optional<bool> fit_for_gate(const NoiseFloor& noise) {
  if (!noise.visit_sigma) return std::nullopt;
  return *noise.visit_sigma <= kPromisedSigma;
}

std::string verdict(const NoiseFloor& noise) {
  if (!noise.visit_sigma) return "unknown whether this is fit for the gate: no visit came through";
  const double sigma = *noise.visit_sigma;
  const double smallest = smallest_slowdown(sigma, kMostPairs);
  const char* fit = *fit_for_gate(noise)          ? "fit for the gate"
                    : smallest <= kUsableSlowdown ? "of limited use for the gate"
                                                  : "not fit for the gate";
  return fmt::format("{}: visit σ {}; slowdowns from {} on can be told ({} with {} pairs)", fit,
                     percent(sigma), percent(smallest),
                     percent(smallest_slowdown(sigma, kFewPairs)), kFewPairs);
}

}  // namespace kvmark
