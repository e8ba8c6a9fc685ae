// Everything that the doctor found out, and what it makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/doctor/harness_cost.h"
#include "bench/doctor/machine_facts.h"
#include "bench/doctor/noise_floor.h"
#include "bench/doctor/speeds.h"
#include "bench/record/clock.h"

namespace kvmark {

struct Diagnosis {
  MachineFacts machine;
  std::string build;                      // compiler and flags of this program
  bool optimized = true;                  // it was compiled for speed
  bool container = false;                 // this process runs in one
  std::string simd_in_use;                // one of those that machine and build have …
  std::vector<std::string> simd_targets;  // … best first
  std::string blas;                       // whose kernels the BLAS library uses
  bool plots = false;                     // there is a Python that can draw
  ClockFigures clock = {};
  Probes probes;  // while the doctor measured
  std::vector<ReadSpeed> reads;
  std::vector<FmaSpeed> fma;
  HarnessCost harness = {};
  NoiseFloor noise;
};

enum class Severity { fine, note, warn };
std::string_view severity_name(Severity severity);

struct MachineFinding {
  std::string name;   // stable: other programs may look for it
  std::string found;  // in words and figures
  Severity severity = Severity::fine;
  std::string advice = {};  // "": nothing to do
};

// Worst first. Where the system does not tell, that is said and is fine: nobody can change it.
std::vector<MachineFinding> judge(const Diagnosis& diagnosis);

// Time that the host gave to others while the doctor measured, as a part of all CPUs'.
std::optional<double> steal_share(const Diagnosis& diagnosis);

// Is this machine fit for the gate: visits repeat to within kPromisedSigma.
std::optional<bool> fit_for_gate(const NoiseFloor& noise);
// "fit for the gate: visit σ 1.3 %; slowdowns from 3.0 % on can be told"
std::string verdict(const NoiseFloor& noise);

// For people: findings with advice, ceilings, and the verdict as the last line.
std::string to_text(const Diagnosis& diagnosis);
// For programs: the same data, {"schema": "kvmark.doctor/1", …}; null: unknown.
nlohmann::ordered_json to_json(const Diagnosis& diagnosis);

}  // namespace kvmark
