// How fast this machine multiplies and adds: the limit of everything that computes in f32.
#pragma once

#include <cstdint>

#include "engines/core/thread_pool.h"

namespace kvmark {

// Independent chains of fused multiply-adds that stay in registers, compiled for a SIMD target
// (a multiplication and an addition where it has no fused instruction).
struct FmaKernel {
  // x = x · factor + addend in every chain, `rounds` times from 0 on; the sum of all chains.
  float (*run)(int64_t rounds, float factor, float addend) = nullptr;
  int chains = 0;  // numbers that a round takes on; 2 FLOPs each
};

// For one of simd_targets().
FmaKernel fma_kernel(int64_t simd_target);

// The f32 rate of all threads of the pool with one of simd_targets(), in GFLOP/s (1e9); takes some
// 10 ms.
double fma_gflop_per_s(ThreadPool& pool, int64_t simd_target);
// With the SIMD target in use.
double fma_gflop_per_s(ThreadPool& pool);

}  // namespace kvmark
