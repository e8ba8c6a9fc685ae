#include "engines/model/unicode.h"

#include <algorithm>
#include <iterator>

namespace kvmark {
namespace {

struct Range {
  uint32_t first, last;
  CharClass kind;
};

constexpr CharClass l = CharClass::letter, n = CharClass::number;
constexpr Range kRanges[] = {
#include "engines/model/unicode.inc"
};

bool is_space(char32_t code) {
  return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

}  // namespace

CharClass char_class(char32_t code) {
  if (is_space(code)) return CharClass::space;
  const Range* after =
      std::upper_bound(std::begin(kRanges), std::end(kRanges), code,
                       [](char32_t c, const Range& range) { return c < range.first; });
  if (after == std::begin(kRanges) || code > std::prev(after)->last) return CharClass::other;
  return std::prev(after)->kind;
}

CodePoint code_point_at(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size() - offset) return {kInvalidCode, 1};

  char32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {kInvalidCode, 1};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[length] || code > 0x10ffff || surrogate) return {kInvalidCode, 1};
  return {code, length};
}

}  // namespace kvmark
