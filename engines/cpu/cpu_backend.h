// The CPU backend: dense products from OpenBLAS, GEMVs and small operations of our own kernels over
// the thread pool. KVMARK_SIMD chooses the target of our kernels; OpenBLAS chooses by itself.
#pragma once

#include <memory>
#include <string>

#include "engines/core/backend.h"
#include "engines/core/thread_pool.h"

namespace kvmark {

std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool);

// The processor for which OpenBLAS has chosen its kernels, "SkylakeX"; OPENBLAS_CORETYPE can name
// another one, whose kernels may be half as fast.
std::string blas_core();

}  // namespace kvmark
