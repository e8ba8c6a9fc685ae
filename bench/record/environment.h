// Where and with what a run was made.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/record/probes.h"

namespace kvmark {

// How a machine is before a run starts anything on it: a later look would find the run's own load.
struct MachineState {
  std::optional<int> cores;             // that this process may use
  std::optional<int64_t> memory_bytes;  // of the whole machine
  std::optional<double> load;           // average of the last minute
  std::optional<double> cpu_quota;      // cores' worth of time that the control group may use
  std::optional<std::string> governor;
  std::optional<bool> huge_pages;            // the kernel gives them to memory that asks (madvise)
  std::optional<bool> vm;                    // a virtual machine
  std::optional<std::string> blas_coretype;  // OPENBLAS_CORETYPE, which overrides OpenBLAS's choice
};
// What cannot be found out is left out.
MachineState sample_machine(const SystemPaths& paths = {});

// What only the caller knows.
struct EnvironmentInput {
  MachineState machine;
  std::string simd;                   // the SIMD target in use; "": null
  std::string blas;                   // whose kernels the BLAS library uses; "": null
  std::optional<std::string> gpu;     // name of the device
  std::string started;                // of the case, as from utc_now(); "": null
  std::vector<std::string> unstable;  // what was seen in the rounds, from disturbances()
};

// Of this build: "git", "compiler" and "flags", as they stand in "env".
nlohmann::ordered_json build_identity();

// The record's "env": commit, compiler and flags of this build, processor, the machine's state,
// container, start and `unstable`: what of the machine's state and of the rounds speaks against the
// timings, in words that are the same in every row. What is not known is null.
nlohmann::ordered_json environment(const EnvironmentInput& input);

// Now as 2026-01-31T12:34:56Z.
std::string utc_now();

}  // namespace kvmark
