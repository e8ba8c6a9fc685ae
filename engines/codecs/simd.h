// Which SIMD target runs: the best of this machine, or the one that KVMARK_SIMD names.
//
// Every file with SIMD kernels includes this header before Highway's own.
#pragma once

// Kernels keep vectors in arrays, which the scalable vectors of SVE and RVV do not allow; those
// machines run their fixed-size target.
// Processors without SSE4 are too old to be measured: one target less to compile.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// The target with integer dot products (VNNI) is left out by default.
#define HWY_WANT_AVX3_DL

#include <hwy/targets.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engines/codecs/codec.h"

namespace kvmark {

// HWY_* bits of the targets that were compiled and that this machine supports, best first.
std::vector<int64_t> simd_targets();
// Of `targets`, the first, or the one whose name is `wanted` (null or "": none). Throws UsageError
// that lists the names.
int64_t choose_simd_target(const std::vector<int64_t>& targets, const char* wanted);
// The target in use, chosen once: KVMARK_SIMD is read at the first call.
int64_t chosen_simd_target();

// The registered codecs compiled for one of simd_targets().
std::span<const Codec> codecs_of(int64_t simd_target);

// The entry of a table made by HWY_EXPORT for one of simd_targets(): unlike HWY_DYNAMIC_DISPATCH it
// leaves the process-wide choice of Highway alone.
#define KVMARK_DISPATCH(function, target) \
  (HWY_DISPATCH_TABLE(function)[::kvmark::dispatch_index(target)])
inline size_t dispatch_index(int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
}

}  // namespace kvmark
