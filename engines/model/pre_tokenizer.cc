#include "engines/model/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "engines/model/unicode.h"

namespace kvmark {
namespace {

constexpr std::array<std::pair<std::string_view, PreTokenizer>, 5> kNames = {{
    {"gpt-2", PreTokenizer::gpt2},
    {"default", PreTokenizer::gpt2},
    {"smollm", PreTokenizer::smollm},
    {"llama-bpe", PreTokenizer::llama3},
    {"qwen2", PreTokenizer::qwen2},
}};

struct Char {
  char32_t code;
  CharClass kind;
  size_t offset;  // of its first byte in the text
};
using Chars = std::span<const Char>;

std::vector<Char> characters(std::string_view text) {
  std::vector<Char> chars;
  chars.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    chars.push_back({point.code, char_class(point.code), at});
    at += point.bytes;
  }
  return chars;
}

bool is_newline(const Char& c) { return c.code == '\n' || c.code == '\r'; }

bool kind_at(Chars text, size_t i, CharClass kind) {
  return i < text.size() && text[i].kind == kind;
}

// Characters from `from` on that are of this class.
size_t run_end(Chars text, size_t from, CharClass kind) {
  while (kind_at(text, from, kind)) ++from;
  return from;
}

// Length of an English contraction ('s 't 're 've 'm 'll 'd) at the start, or 0.
size_t contraction(Chars text, bool any_case) {
  const auto letter = [&](size_t i) -> char32_t {
    if (i >= text.size()) return 0;
    const char32_t c = text[i].code;
    return any_case && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  };
  if (letter(0) != '\'') return 0;
  const char32_t a = letter(1), b = letter(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
  return two ? 3 : 0;
}

// A run of spaces leaves its last one to the word that follows (\s+(?!\S)|\s+).
size_t space_word(Chars text) {
  const size_t end = run_end(text, 0, CharClass::space);
  return end < text.size() && end > 1 ? end - 1 : end;
}

// Length of the first word of a text that is not empty:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_word(Chars text) {
  if (const size_t length = contraction(text, false)) return length;
  const size_t first = text[0].code == ' ' && text.size() > 1 ? 1 : 0;
  const CharClass kind = text[first].kind;
  return kind == CharClass::space ? space_word(text) : run_end(text, first, kind);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
//  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t llama3_word(Chars text, size_t max_digits) {
  if (const size_t length = contraction(text, true)) return length;
  const bool may_lead = !is_newline(text[0]) && text[0].kind != CharClass::number;
  const size_t letters = may_lead && text[0].kind != CharClass::letter ? 1 : 0;
  if (kind_at(text, letters, CharClass::letter)) return run_end(text, letters, CharClass::letter);
  if (text[0].kind == CharClass::number) {
    return run_end(text.first(std::min(max_digits, text.size())), 0, CharClass::number);
  }
  const size_t others = text[0].code == ' ' ? 1 : 0;
  if (kind_at(text, others, CharClass::other)) {
    size_t end = run_end(text, others, CharClass::other);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  for (size_t end = run_end(text, 0, CharClass::space); end > 0; --end) {
    if (is_newline(text[end - 1])) return end;
  }
  return space_word(text);
}

// No word of smollm reaches, or looks, across the edge of a number; the others have no such edges.
size_t fragment_end(PreTokenizer kind, Chars text, size_t from) {
  if (kind != PreTokenizer::smollm) return text.size();
  if (text[from].kind == CharClass::number) return from + 1;
  while (from < text.size() && text[from].kind != CharClass::number) ++from;
  return from;
}

size_t first_word(PreTokenizer kind, Chars text) {
  switch (kind) {
    case PreTokenizer::gpt2:
    case PreTokenizer::smollm:
      return gpt2_word(text);
    case PreTokenizer::llama3:
      return llama3_word(text, 3);
    case PreTokenizer::qwen2:
      return llama3_word(text, 1);
  }
  return text.size();
}

}  // namespace

std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name) {
  for (const auto& [known, kind] : kNames) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

std::vector<std::string> pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const auto& entry : kNames) names.emplace_back(entry.first);
  return names;
}

std::vector<std::string_view> split_words(PreTokenizer kind, std::string_view text) {
  const std::vector<Char> chars = characters(text);
  std::vector<std::string_view> words;
  size_t fragment = 0;
  for (size_t at = 0; at < chars.size();) {
    if (at == fragment) fragment = fragment_end(kind, chars, at);
    const size_t next = at + first_word(kind, Chars(chars).subspan(at, fragment - at));
    const size_t begin = chars[at].offset;
    const size_t end = next < chars.size() ? chars[next].offset : text.size();
    words.push_back(text.substr(begin, end - begin));
    at = next;
  }
  return words;
}

}  // namespace kvmark
