// Files that are there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace kvmark {

// Writes aside and renames, so that a crash leaves the old file or the new one; makes the folder
// where it is missing. A link stays, the file behind it is replaced. What is no plain file
// (/dev/stdout, a pipe) is appended to. Throws RuntimeError naming the file.
void write_whole(const std::string& path, std::string_view text);

// Before long work, whether write_whole() can be expected to succeed. Writes and makes nothing.
// Throws UsageError naming the file.
void check_writable(const std::string& path);

}  // namespace kvmark
