// The CPU's engines: layout × codec × policy composed behind the KvEngine seam.
#pragma once

#include <cstdint>
#include <memory>

#include "engines/catalog/engine_spec.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

struct CpuEngineOptions {
  // shuffled: paged blocks are handed out in a random order, a function of the seed.
  PoolOrder pool_order = PoolOrder::fresh;
  uint64_t seed = 1;
  // Fill all unused memory with NaN patterns and table entries with −1 (tests).
  bool poison = false;
};

// Throws UsageError when the catalog refuses the combination, RuntimeError when memory is short.
// The pool must outlive the engine.
std::unique_ptr<KvEngine> make_cpu_engine(const EngineSpec& engine, const KvSpec& spec,
                                          ThreadPool& pool, const CpuEngineOptions& options = {});

}  // namespace kvmark
