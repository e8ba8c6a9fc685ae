#include "bench/record/whole_file.h"

#include <fmt/format.h>

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

}  // namespace kvmark
