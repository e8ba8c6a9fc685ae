// The CPU's engines: layout × codec × policy composed behind the KvEngine seam.
#pragma once

#include <cstdint>
#include <memory>

#include "engines/catalog/engine_spec.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

struct CpuEngineOptions {
  PoolOrder pool_order = PoolOrder::fresh;  // shuffled: blocks are handed out in a seeded random order
  uint64_t seed = 1;
  bool poison = false;  // fill all unused memory with NaN patterns and table entries with −1 (tests)
};

// Throws UsageError when the catalog refuses the combination, RuntimeError when memory is short. The
// pool must outlive the engine.
std::unique_ptr<KvEngine> make_cpu_engine(const EngineSpec& engine, const KvSpec& spec,
                                          ThreadPool& pool, const CpuEngineOptions& options = {});

}  // namespace kvmark
