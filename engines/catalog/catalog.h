// Is this combination possible, and what bytes will it take: asked when a plan is read, long before
// any memory is allocated.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/catalog/engine_spec.h"
#include "engines/core/kv_engine.h"

namespace kvmark {

// The reason why `engine` cannot hold such a cache, or nothing. Independent of available memory.
std::optional<Refusal> check_engine(const EngineSpec& engine, const KvSpec& spec);

// The footprint after each of `lengths` sequences committed that many positions: live, reserved and
// peak exactly as the engine's allocator will count them. (The peak of policy grow depends on the
// order: it is exact when all sequences are open and get their rows one at a time, one sequence
// after the other, and an upper bound where whole prompts skip some of the growth.) Throws
// LogicError on a combination that check_engine refuses or on lengths beyond the spec.
Footprint predict_footprint(const EngineSpec& engine, const KvSpec& spec,
                            std::span<const int> lengths);

// Every layout × codec with the default arguments, refused ones with their reason.
struct CatalogEntry {
  EngineSpec engine;
  std::optional<Refusal> refusal;  // for a common shape (head_dim 64)
  std::string use;                 // when to use it, one line; "" where refused
};
std::vector<CatalogEntry> catalog();

}  // namespace kvmark
