// How the time of a run grows with its tokens.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace kvmark {

// Fewer say little about how the time grows.
inline constexpr int64_t kGrowthTokens = 64;

// Tokens of a sequence, and the time since the start when the last of them was there.
struct TimeSoFar {
  std::vector<double> tokens, ms;
};

// Of the median round, from the first token on; empty where the record has no gaps between tokens
// or no time to first token.
TimeSoFar time_so_far(const nlohmann::ordered_json& record);

// The exponent with which the time of a whole run grows with its tokens, from an empty cache on:
// over the last half, since what a run costs at the start hides how it grows. Nothing after a
// prompt and for runs that are too short to say.
std::optional<double> growth_of(const nlohmann::ordered_json& record);

}  // namespace kvmark
