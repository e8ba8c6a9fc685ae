#include "bench/doctor/system_files.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include "engines/core/split.h"

namespace kvmark {

std::optional<std::string> file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::optional<std::string> file_line(const std::filesystem::path& path) {
  const auto text = file_text(path);
  if (!text) return std::nullopt;
  const std::string line = text->substr(0, text->find('\n'));
  return line.empty() ? std::nullopt : std::optional(line);
}

std::optional<int64_t> file_integer(const std::filesystem::path& path) {
  const auto line = file_line(path);
  return line ? leading_integer(*line) : std::nullopt;
}

std::optional<std::string> keyed_text(const std::optional<std::string>& text,
                                      std::string_view key) {
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n')) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t:", key.size());
    if (value == key.size() || value == std::string::npos) continue;  // a longer key; no value
    return line.substr(value);
  }
  return std::nullopt;
}

std::optional<int64_t> keyed_integer(const std::optional<std::string>& text, std::string_view key) {
  const auto value = keyed_text(text, key);
  return value ? leading_integer(*value) : std::nullopt;
}

std::optional<int64_t> leading_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text, ',')) {
    const auto first = leading_integer(part);
    if (!first) continue;
    const size_t dash = part.find('-');
    const auto last = dash == std::string::npos
                          ? first
                          : leading_integer(std::string_view(part).substr(dash + 1));
    for (int64_t cpu = *first; last && cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::optional<std::string> bracketed(const std::optional<std::string>& line) {
  if (!line) return std::nullopt;
  const size_t open = line->find('['), close = line->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return line->substr(open + 1, close - open - 1);
}

}  // namespace kvmark
