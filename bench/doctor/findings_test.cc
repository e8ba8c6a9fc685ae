#include <gmock/gmock.h>

#include <algorithm>

#include "bench/doctor/diagnosis.h"

namespace kvmark {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A quiet server that is all ours.
Diagnosis healthy() {
  Diagnosis d;
  MachineFacts& m = d.machine;
  m.state.cores = 8;
  m.state.load = 0.1;
  m.state.governor = "performance";
  m.state.vm = false;
  m.processor = "A Processor";
  m.cpus_present = 8;
  m.physical_cores = 8;
  m.numa_nodes = 1;
  m.isa = {"avx2"};
  m.caches = {{1, 48 << 10, 1}, {2, 1 << 20, 1}, {3, 32 << 20, 8}};
  m.turbo = false;
  m.huge_pages = "madvise";
  m.state.memory_bytes = int64_t{64} << 30;
  m.swap_used_bytes = 0;
  m.clock_source = "tsc";
  m.perf_event_paranoid = 2;
  m.counters = true;
  d.build = "gcc, -O3";
  d.simd_in_use = "AVX3";
  d.simd_targets = {"AVX3", "AVX2"};
  d.blas = "SkylakeX";
  d.plots = true;
  d.clock = {20, 10};
  d.probes.wall_ms = 1000;
  d.probes.steal_ms = 0;
  d.probes.throttled_ms = 0;
  d.probes.lowest_core_ghz = 3;
  d.probes.highest_core_ghz = 3.1;
  d.reads = {
      {"L2", 512 << 10, 1, 200.0}, {"L2", 512 << 10, 8, 1600.0}, {"DRAM", 256 << 20, 1, 40.0}};
  d.fma = {{"AVX3", 1, 250.0}, {"AVX2", 1, 125.0}};
  d.harness = {.step_ms = 0.4, .clock_reads = 26, .share = 0.004, .share_ci95 = {0.003, 0.005}};
  d.noise = {.visits = 16,
             .repeated = 0,
             .visit_sigma = 0.01,
             .sigma_with_drift = 0.011,
             .worker_start_ms = 60,
             .missing_because = {}};
  return d;
}

MachineFinding finding(const Diagnosis& d, const std::string& name) {
  for (const MachineFinding& f : judge(d)) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << "no finding " << name;
  return {};
}

TEST(Findings, AHealthyMachineHasNothingToDo) {
  for (const MachineFinding& f : judge(healthy())) {
    EXPECT_EQ(f.severity, Severity::fine) << f.name << ": " << f.found;
    EXPECT_EQ(f.advice, "") << f.name;
    EXPECT_NE(f.found, "") << f.name;
  }
}

// A container without /sys: nobody can change it, so nothing to warn of but what was measured.
TEST(Findings, WhatIsNotVisibleIsFine) {
  Diagnosis d = healthy();
  d.machine = {};
  d.probes = {};
  for (const MachineFinding& f : judge(d)) EXPECT_EQ(f.severity, Severity::fine) << f.name;
  EXPECT_EQ(finding(d, "governor").found, "not visible here");
}

TEST(Findings, EachDiseaseIsFoundWithAnAdvice) {
  struct Disease {
    const char* name;
    Severity severity;
    const char* found;
    void (*infect)(Diagnosis& d);
  };
  const Disease diseases[] = {
      {"noise", Severity::warn, "3.0 %", [](Diagnosis& d) { d.noise.visit_sigma = 0.03; }},
      {"noise", Severity::warn, "unknown: it died",
       [](Diagnosis& d) { d.noise = {.missing_because = "it died"}; }},
      {"worker", Severity::note, "400 ms", [](Diagnosis& d) { d.noise.worker_start_ms = 400; }},
      {"load", Severity::warn, "4.1 on 8 CPUs", [](Diagnosis& d) { d.machine.state.load = 4.1; }},
      {"steal", Severity::note, "1.0 %", [](Diagnosis& d) { d.probes.steal_ms = 80; }},
      {"steal", Severity::warn, "12 %", [](Diagnosis& d) { d.probes.steal_ms = 960; }},
      {"cpu_quota", Severity::warn, "1.5 CPUs",
       [](Diagnosis& d) { d.machine.state.cpu_quota = 1.5; }},
      {"cpu_quota", Severity::warn, "stopped for 12 ms",
       [](Diagnosis& d) { d.probes.throttled_ms = 12; }},
      {"governor", Severity::warn, "powersave",
       [](Diagnosis& d) { d.machine.state.governor = "powersave"; }},
      {"turbo", Severity::note, "on", [](Diagnosis& d) { d.machine.turbo = true; }},
      {"cores", Severity::note, "8 CPUs of 64", [](Diagnosis& d) { d.machine.cpus_present = 64; }},
      {"smt", Severity::note, "8 CPUs on 4 cores",
       [](Diagnosis& d) { d.machine.physical_cores = 4; }},
      {"numa", Severity::warn, "2 nodes", [](Diagnosis& d) { d.machine.numa_nodes = 2; }},
      {"simd", Severity::note, "AVX2", [](Diagnosis& d) { d.simd_in_use = "AVX2"; }},
      {"huge_pages", Severity::warn, "never", [](Diagnosis& d) { d.machine.huge_pages = "never"; }},
      {"memory", Severity::note, "limit is 2 GiB",
       [](Diagnosis& d) { d.machine.memory_limit_bytes = int64_t{2} << 30; }},
      {"swap", Severity::note, "1 MiB", [](Diagnosis& d) { d.machine.swap_used_bytes = 1 << 20; }},
      {"vm", Severity::note, "virtual", [](Diagnosis& d) { d.machine.state.vm = true; }},
      {"clock", Severity::warn, "hpet",
       [](Diagnosis& d) {
         d.machine.clock_source = "hpet";
         d.clock.overhead_ns = 900;
       }},
      {"harness", Severity::warn, "2.0 % (1.5 to 2.5 %)",
       [](Diagnosis& d) {
         d.harness.share = 0.02;
         d.harness.share_ci95 = {0.015, 0.025};
       }},
      {"harness", Severity::note, "0.4 % (-1.0 to 1.8 %)",
       [](Diagnosis& d) {
         d.harness.share_ci95 = {-0.010, 0.018};
       }},
      {"counters", Severity::note, "4: not for this user",
       [](Diagnosis& d) { d.machine.perf_event_paranoid = 4; }},
      {"counters", Severity::note, "no counters", [](Diagnosis& d) { d.machine.counters = false; }},
      {"blas", Severity::warn, "OPENBLAS_CORETYPE=Haswell",
       [](Diagnosis& d) { d.machine.state.blas_coretype = "Haswell"; }},
      {"plots", Severity::note, "no python3", [](Diagnosis& d) { d.plots = false; }},
      {"build", Severity::warn, "-O3", [](Diagnosis& d) { d.optimized = false; }},
  };
  for (const Disease& disease : diseases) {
    Diagnosis d = healthy();
    disease.infect(d);
    const MachineFinding f = finding(d, disease.name);
    EXPECT_EQ(f.severity, disease.severity) << f.name;
    EXPECT_THAT(f.found, HasSubstr(disease.found)) << f.name;
    EXPECT_NE(f.advice, "") << f.name;
    // It is the only one that is ill, and so the first.
    EXPECT_EQ(judge(d)[0].name, disease.name);
    EXPECT_EQ(judge(d)[1].severity, Severity::fine) << judge(d)[1].name;
  }
}

TEST(Findings, TheWorstComeFirst) {
  Diagnosis d = healthy();
  d.plots = false;
  d.machine.huge_pages = "never";
  const auto findings = judge(d);
  EXPECT_EQ(findings[0].name, "huge_pages");
  EXPECT_EQ(findings[1].name, "plots");
}

TEST(Findings, AQuotaOfAllCoresIsEnough) {
  Diagnosis d = healthy();
  d.machine.state.cpu_quota = 8;
  EXPECT_EQ(finding(d, "cpu_quota").severity, Severity::fine);
}

TEST(Verdict, SaysWhatCanBeTold) {
  NoiseFloor noise = healthy().noise;
  noise.visit_sigma = 0.013;
  EXPECT_EQ(fit_for_gate(noise), true);
  EXPECT_THAT(verdict(noise), HasSubstr("fit for the gate: visit σ 1.3 %; slowdowns from "));
  noise.visit_sigma = 0.03;
  EXPECT_EQ(fit_for_gate(noise), false);
  EXPECT_THAT(verdict(noise), HasSubstr("of limited use for the gate: visit σ 3.0 %"));
  noise.visit_sigma = 0.26;
  EXPECT_THAT(verdict(noise), HasSubstr("not fit for the gate: visit σ 26 %"));
  noise.visit_sigma = std::nullopt;
  EXPECT_EQ(fit_for_gate(noise), std::nullopt);
  EXPECT_THAT(verdict(noise), HasSubstr("unknown whether"));
}

TEST(DoctorText, EndsWithTheVerdict) {
  Diagnosis d = healthy();
  d.machine.state.governor = "powersave";
  const std::string text = to_text(d);
  EXPECT_THAT(text, AllOf(HasSubstr("A Processor\n\nwarn  governor    powersave\n"),
                          HasSubstr("→ the clock follows the load"),
                          HasSubstr("reading, GB/s               1 thread   8 threads\n"
                                    "L2 (512 KiB)                   200.0        1600\n"
                                    "DRAM (256 MiB)                 40.00\n"),
                          HasSubstr("AVX2                           125.0\n")));
  EXPECT_TRUE(text.ends_with(verdict(d.noise) + "\n"));
}

TEST(DoctorJson, HoldsTheFiguresAndNullForTheUnknown) {
  Diagnosis d = healthy();
  d.machine.state.governor = std::nullopt;
  const auto json = to_json(d);
  EXPECT_EQ(json["schema"], "kvmark-doctor/1");
  EXPECT_EQ(json["machine"]["cpus_allowed"], 8);
  EXPECT_TRUE(json["machine"]["governor"].is_null());
  EXPECT_EQ(json["machine"]["caches"][1]["bytes"], 1 << 20);
  EXPECT_EQ(json["ceilings"]["read"][1]["read_gb_per_s"], 1600.0);
  EXPECT_EQ(json["ceilings"]["fma"][0]["fma_gflop_per_s"], 250.0);
  EXPECT_EQ(json["harness"]["step_cost_share"], 0.004);
  EXPECT_EQ(json["harness"]["step_cost_share_ci95"][1], 0.005);
  EXPECT_EQ(json["noise"]["visit_sigma"], 0.01);
  EXPECT_EQ(json["noise"]["worker_start_ms"], 60);
  EXPECT_EQ(json["noise"]["smallest_slowdown_48_pairs"], smallest_slowdown(0.01, 48));
  EXPECT_EQ(json["findings"].size(), judge(d).size());
  EXPECT_TRUE(json["findings"][0]["advice"].is_null());
  EXPECT_EQ(json["verdict"]["fit_for_gate"], true);

  d.noise = {.missing_because = "it died"};
  const auto silent = to_json(d);
  EXPECT_TRUE(silent["noise"]["visit_sigma"].is_null());
  EXPECT_TRUE(silent["noise"]["smallest_slowdown_24_pairs"].is_null());
  EXPECT_EQ(silent["noise"]["missing_because"], "it died");
  EXPECT_TRUE(silent["verdict"]["fit_for_gate"].is_null());
}

}  // namespace
}  // namespace kvmark
