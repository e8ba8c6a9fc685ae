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

TEST(CheckWritable, TellsBeforehandAndMakesNothing) {
  const std::string folder = ::testing::TempDir() + "check_writable";
  fs::remove_all(folder);
  check_writable(folder + "/new/file");
  check_writable("file");
  check_writable("/dev/stdout");
  EXPECT_FALSE(fs::exists(folder));
  write_whole(folder + "/plain", "x");
  check_writable(folder + "/plain");
  EXPECT_THROW(check_writable(folder), UsageError);
  EXPECT_THROW(check_writable(folder + "/plain/below"), UsageError);
  EXPECT_EQ(read(folder + "/plain"), "x");
}

}  // namespace
}  // namespace kvmark
