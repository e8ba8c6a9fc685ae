// The kernel's text files about this process, its control groups and the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

// Where they lie; tests bring folders of their own.
struct SystemPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string sys = "/sys";
};

// The whole file; "" where it cannot be read.
std::string read_system_file(const std::filesystem::path& path);

// The number at the start of `text`, after blanks, colons and tabs.
std::optional<int64_t> leading_integer(std::string_view text);

// The number of the line that starts with `key`, as in /proc/self/status or memory.stat.
std::optional<int64_t> keyed_integer(std::string_view text, std::string_view key);

// A folder with the files of one control group.
struct ControlGroup {
  std::filesystem::path folder;
  bool version2 = false;
};

// The groups of this process that `controller` ("memory", "cpu") acts through, from the mount down
// to its own, of versions 1 and 2: the tightest ancestor counts. Inside a container the path may be
// the host's and not be there; the mount itself is then the container's group.
std::vector<ControlGroup> control_groups(const SystemPaths& paths, std::string_view controller);

}  // namespace kvmark
