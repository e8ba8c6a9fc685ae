// The number formats of GGUF tensors, as one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engines/model/gguf.h"

namespace kvmark {

// A row of a tensor is a sequence of blocks of `block_values` numbers in `block_bytes` bytes.
struct GgufTypeInfo {
  GgufType type;
  std::string_view name;
  int block_values;
  int block_bytes;
  // Decodes `blocks` consecutive blocks into block_values floats each.
  void (*decode)(const std::byte* bytes, int64_t blocks, float* out);
};

// Null for a type that kvmark does not read.
const GgufTypeInfo* find_gguf_type(uint32_t number);

}  // namespace kvmark
