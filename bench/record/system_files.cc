#include "bench/record/system_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace kvmark {
namespace fs = std::filesystem;

// By the system's calls: a stream costs several times as much, and a round reads a dozen files.
std::string read_system_file(const fs::path& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char chunk[4096];
  for (ssize_t n; (n = read(file, chunk, sizeof chunk)) > 0;) text.append(chunk, n);
  close(file);
  return text;
}

std::optional<int64_t> leading_integer(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t:");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<int64_t> keyed_integer(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.substr(0, key.size()) != key) continue;
    const std::string_view after = line.substr(key.size());
    const size_t colon = after.find_first_not_of(" \t");
    // "VmRSS" must not match a longer key.
    if (colon == std::string_view::npos || (colon == 0 && after[0] != ':')) continue;
    return leading_integer(after);
  }
  return std::nullopt;
}

std::vector<ControlGroup> control_groups(const SystemPaths& paths, std::string_view controller) {
  std::vector<ControlGroup> groups;
  const auto add = [&](const fs::path& mount, std::string_view group, bool version2) {
    fs::path folder = mount;
    groups.push_back({folder, version2});
    for (const fs::path& part : fs::path(group).relative_path()) {
      groups.push_back({folder /= part, version2});
    }
  };
  std::istringstream lines(read_system_file(paths.proc + "/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (controllers == ",,") {
      add(paths.cgroup, group, true);
    } else if (controllers.find(fmt::format(",{},", controller)) != std::string::npos) {
      add(fs::path(paths.cgroup) / controller, group, false);
    }
  }
  return groups;
}

}  // namespace kvmark
