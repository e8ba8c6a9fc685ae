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
// peak exactly as the engine's allocator will count them.
Footprint predict_footprint(const EngineSpec& engine, const KvSpec& spec,
                            std::span<const int> lengths);

// Every layout × codec with the default arguments, refused ones with their reason.
struct CatalogEntry {
  EngineSpec engine;
  std::optional<Refusal> refusal;  // for a common shape (head_dim 64)
  std::string use;                 // when to use it, one line
};
std::vector<CatalogEntry> catalog();

}  // namespace kvmark
