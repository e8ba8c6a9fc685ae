// Names of engines: layout/codec/policy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

enum class LayoutKind { recompute, contiguous, paged };
enum class PolicyKind { stop, grow };
enum class PoolOrder { fresh, shuffled };

// `paged:16/k=int8:g64,v=int4:g32/grow:2` in parts.
struct EngineSpec {
  LayoutKind layout = LayoutKind::contiguous;
  int block = 0;  // slots of a block; paged only
  std::string k_codec = "f32";
  std::string v_codec = "f32";
  PolicyKind policy = PolicyKind::stop;
  double grow_factor = 2.0;  // grow only, > 1

  // The canonical name: `contiguous/f32`, `paged:16/int8:g32`,
  // `contiguous/k=f16,v=int8:g32/grow:2`, `recompute`. The default policy is left out.
  std::string name() const;
  bool operator==(const EngineSpec&) const = default;
};

// Reads a preset (`recompute`, `contiguous`, `paged`, `fp16`, `compressed`), a bare codec
// (`int8:g32` is `contiguous/int8:g32`), or a full name. Throws UsageError that says which part is
// wrong, what would be right there and the nearest valid name.
EngineSpec parse_engine(std::string_view text);

// The preset names in display order, and the one that `spec` has, or "".
const std::vector<std::string>& preset_names();
std::string preset_of(const EngineSpec& spec);

}  // namespace kvmark
