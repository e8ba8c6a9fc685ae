#include "bench/record/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  if (!file) throw RuntimeError(fmt::format("cannot write {}", path));
}

}  // namespace

void write_whole(const std::string& path, std::string_view text) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return write(path, text);
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);  // write() says that it failed
  const std::string aside = path + ".tmp";
  write(aside, text);
  fs::rename(aside, path, error);
  if (error) throw RuntimeError(fmt::format("cannot write {}: {}", path, error.message()));
}

void check_writable(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw UsageError(fmt::format("{}: is a folder; expected the name of a file", path));
  }
  fs::path there = path;  // the file, or the nearest folder above it
  if (!fs::exists(there, error) || fs::is_regular_file(there, error)) {
    do {
      there = there.has_parent_path() ? there.parent_path() : fs::path(".");
    } while (!fs::exists(there, error));
    if (!fs::is_directory(there, error)) {
      throw UsageError(fmt::format("{}: {} is no folder", path, there.string()));
    }
  }
  if (access(there.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("{}: {} cannot be written to", path, there.string()));
  }
}

}  // namespace kvmark
