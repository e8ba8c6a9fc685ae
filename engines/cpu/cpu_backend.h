// The CPU backend: dense products from OpenBLAS (run-time dispatch), GEMVs and small operations
// over the thread pool.
#pragma once

#include <memory>

#include "engines/core/backend.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool);

}  // namespace kvmark
