// Where and with what a run was made.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kvmark {

// What only the caller knows.
struct EnvironmentInput {
  std::string simd;                   // the SIMD target in use; "": null
  std::optional<bool> huge_pages;     // of the caches' pools
  std::optional<std::string> gpu;     // name of the device
  std::vector<std::string> unstable;  // further reasons not to trust timings
};

// The record's "env": commit, compiler and flags of this build, processor, cores that this process
// may use, governor, load, container and virtual machine, start (now, UTC) and `unstable`: what
// makes timings noisy here, in words. What cannot be found out is null.
nlohmann::ordered_json environment(const EnvironmentInput& input);

// Now as 2026-01-31T12:34:56Z.
std::string utc_now();

}  // namespace kvmark
