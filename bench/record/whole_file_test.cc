#include "bench/record/whole_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(WholeFile, ReplacesAndMakesItsFolder) {
  const std::string folder = ::testing::TempDir() + "whole_file";
  fs::remove_all(folder);
  const std::string path = folder + "/new/file";
  write_whole(path, "first, and longer");
  write_whole(path, "second\r\n");
  EXPECT_EQ(read(path), "second\r\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder + "/new"), fs::directory_iterator{}), 1);
}

TEST(WholeFile, ThatCannotBeWrittenIsAnError) {
  const std::string file = ::testing::TempDir() + "whole_file_plain";
  write_whole(file, "x");
  EXPECT_THROW(write_whole(file + "/below", "x"), RuntimeError);
  EXPECT_THROW(write_whole("/dev/full", "x"), RuntimeError);
}

}  // namespace
}  // namespace kvmark
