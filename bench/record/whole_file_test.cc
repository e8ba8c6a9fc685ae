#include "bench/record/whole_file.h"

#include <gtest/gtest.h>

#include <cstdio>
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

TEST(WholeFile, BehindALinkIsReplacedAndTheLinkStays) {
  const std::string folder = ::testing::TempDir() + "whole_file_link";
  fs::remove_all(folder);
  write_whole(folder + "/real", "old");
  fs::create_symlink("real", folder + "/link");
  write_whole(folder + "/link", "new");
  EXPECT_EQ(read(folder + "/real"), "new");
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
}

// /dev/stdout is a link to such a name, which may stand for a plain file.
TEST(WholeFile, ThatIsOpenIsAppendedTo) {
  const std::string path = ::testing::TempDir() + "whole_file_open";
  write_whole(path, "first;");
  std::FILE* open = std::fopen(path.c_str(), "a");
  write_whole("/proc/self/fd/" + std::to_string(fileno(open)), "second");
  std::fclose(open);
  EXPECT_EQ(read(path), "first;second");
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
