// What byte-level tokenizers ask of Unicode: code points of UTF-8 and three classes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvmark {

// letter: \p{L}; number: \p{N}; space: the property White_Space (\s); other: the rest.
enum class CharClass : uint8_t { letter, number, space, other };

CharClass char_class(char32_t code);

struct CodePoint {
  char32_t code = 0;
  size_t bytes = 1;  // it takes in the text
};

// Stands for a byte that is no valid UTF-8; beyond Unicode, and of class `other`.
constexpr char32_t kInvalidCode = 0xffffffff;

// The code point at `offset` < text.size(). A byte that begins no valid sequence (overlong forms,
// surrogates and cut sequences included) is one kInvalidCode.
CodePoint code_point_at(std::string_view text, size_t offset);

}  // namespace kvmark
