// Small files in which the system tells about itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

// The whole file; nothing where it cannot be read.
std::optional<std::string> file_text(const std::filesystem::path& path);
// Its first line; nothing where that is empty too.
std::optional<std::string> file_line(const std::filesystem::path& path);
// The number at the start of the first line.
std::optional<int64_t> file_integer(const std::filesystem::path& path);

// The value of the first line "key value", "key: value" or "key\t: value" of `text`, with what
// follows it ("8000 kB").
std::optional<std::string> keyed_text(const std::optional<std::string>& text, std::string_view key);
std::optional<int64_t> keyed_integer(const std::optional<std::string>& text, std::string_view key);

// The number at the start of `text`; nothing where there is none.
std::optional<int64_t> leading_integer(std::string_view text);

// "0-2,5" → {0, 1, 2, 5}, as the kernel lists processors and nodes; empty where it is none.
std::vector<int> parse_cpu_list(std::string_view text);

// The chosen word of "always [madvise] never".
std::optional<std::string> bracketed(const std::optional<std::string>& line);

}  // namespace kvmark
