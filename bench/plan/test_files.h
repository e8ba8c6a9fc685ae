// Plans for tests, in a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "engines/core/check.h"

namespace kvmark {

// A folder that goes away with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvmark-plan-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw RuntimeError("cannot make " + name);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

inline Plan plan_of(const std::string& yaml, const std::vector<Override>& overrides = {}) {
  const TempFolder folder;
  return load_plan(folder.write("plan.yaml", yaml), overrides);
}

// The text of the UsageError that reading the plan throws, without the temporary folder's name.
inline std::string plan_error(const std::string& text, const std::vector<Override>& overrides = {},
                              const std::string& name = "plan.yaml") {
  const TempFolder folder;
  const std::string path = folder.write(name, text);
  try {
    load_plan(path, overrides);
  } catch (const UsageError& e) {
    std::string what = e.what();
    const std::string prefix = path.substr(0, path.size() - name.size());
    for (size_t at; (at = what.find(prefix)) != std::string::npos;) what.erase(at, prefix.size());
    return what;
  }
  return "no error";
}

// The first case of a plan.
inline Case first(const Plan& plan) { return plan.groups.at(0).cases.at(0); }

}  // namespace kvmark
