#include "bench/record/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text, std::ios::openmode mode) {
  std::ofstream file(path, mode | std::ios::binary);
  file << text;
  file.close();
  if (!file) throw RuntimeError(fmt::format("cannot write {}", path.string()));
}

}  // namespace

// /dev/stdout is a link to whatever stdout is.
bool is_stream(const std::string& path) {
  std::error_code error;
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return true;
  return fs::exists(path, error) && !fs::is_regular_file(path, error);
}

void write_whole(const std::string& path, std::string_view text) {
  if (is_stream(path)) return write(path, text, std::ios::app);
  std::error_code error;
  fs::path target = fs::canonical(path, error);  // a link stays
  if (error) target = path;
  if (target.has_parent_path()) {
    fs::create_directories(target.parent_path(), error);  // write() says that it failed
  }
  const fs::path aside = target.string() + ".tmp";
  write(aside, text, std::ios::trunc);
  fs::rename(aside, target, error);
  if (error) throw RuntimeError(fmt::format("cannot write {}: {}", path, error.message()));
}

fs::path resolved(const fs::path& name) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(name, error);
  return error ? name : path;
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
