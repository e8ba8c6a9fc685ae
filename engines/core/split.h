// Text that is cut at a character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

// The parts of `text` between `separator`s, empty ones included: "" has one empty part.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace kvmark
