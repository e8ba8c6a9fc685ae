#include "engines/codecs/simd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/core/check.h"

namespace kvmark {

std::vector<int64_t> simd_targets() {
  std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  // Highway gives a better target a lower bit.
  std::sort(targets.begin(), targets.end());
  return targets;
}

int64_t choose_simd_target(const std::vector<int64_t>& targets, const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return targets.front();
  std::string names;
  for (const int64_t target : targets) {
    if (std::string_view(hwy::TargetName(target)) == wanted) return target;
    names += (names.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw UsageError(
      fmt::format("KVMARK_SIMD={}: not a SIMD target of this machine and build; expected one of "
                  "{}, or unset for the best",
                  wanted, names));
}

int64_t chosen_simd_target() {
  static const int64_t target = choose_simd_target(simd_targets(), std::getenv("KVMARK_SIMD"));
  return target;
}

std::string_view simd_target() { return hwy::TargetName(chosen_simd_target()); }

std::span<const Codec> codecs() { return codecs_of(chosen_simd_target()); }

const Codec* find_codec(std::string_view name) {
  for (const Codec& codec : codecs()) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

}  // namespace kvmark
