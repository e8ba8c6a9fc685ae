// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvmark {

// Writes aside and renames, so that a crash leaves the old file or the new one; makes the folder
// where it is missing. A link stays, the file behind it is replaced. What
// is_stream() is appended to. Throws RuntimeError naming the file.
void write_whole(const std::string& path, std::string_view text);

// Whether a name stands for what is no plain file of its own (/dev/stdout, a pipe).
bool is_stream(const std::string& path);

// What a name stands for, links followed, so that two names can be compared; the name itself where
// that cannot be told (a pipe).
std::filesystem::path resolved(const std::filesystem::path& name);

// Before long work, whether write_whole() can be expected to succeed. Writes and makes nothing.
// Throws UsageError naming the file.
void check_writable(const std::string& path);

}  // namespace kvmark
