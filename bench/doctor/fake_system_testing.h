// For tests: a made-up /proc, /sys and /sys/fs/cgroup.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/record/probes.h"

namespace kvmark {

class FakeSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("kvmark_doctor_") + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // `path` starts with proc/, sys/ or cgroup/.
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  SystemPaths paths() const {
    return {(root_ / "proc").string(), (root_ / "cgroup").string(), (root_ / "sys").string()};
  }

 private:
  std::filesystem::path root_;
};

}  // namespace kvmark
