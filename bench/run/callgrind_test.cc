#include "bench/run/callgrind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "bench/run/run_testing.h"

namespace kvmark {
namespace {

using testing::Contains;
using testing::HasSubstr;

class CallgrindTest : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = folder_ / "callgrind.out";
    std::ofstream(path) << text;
    return path;
  }

  // What reading the file fails with.
  std::string failure(const std::string& path) {
    try {
      read_callgrind(path);
    } catch (const WorkerFailed& e) {
      return e.what();
    }
    return "";
  }

  ScratchFolder folder_;
};

TEST_F(CallgrindTest, TheTotalIsTheFirstEvent) {
  EXPECT_EQ(read_callgrind(write("version: 1\nevents: Ir Dr\nfn=(1) totals: f\n3 7 8\n\n"
                                 "totals: 12345678901 17\n")),
            12345678901);
}

TEST_F(CallgrindTest, NoCountIsAFailureThatNamesTheFile) {
  EXPECT_THAT(failure(folder_ / "none"), HasSubstr(folder_ / "none"));
  EXPECT_THAT(failure(write("events: Ir\nsummary: 0\ntotals: 0\n")), HasSubstr("stripped"));
  EXPECT_THAT(failure(write("events: Ir\n")), HasSubstr("no instructions"));
}

TEST_F(CallgrindTest, TheWorkerStandsBehindValgrindAndItsSettings) {
  const WorkerCommand command = under_callgrind({"kvmark", "worker"}, "100%pure/out");
  EXPECT_EQ(WorkerCommand(command.end() - 2, command.end()), (WorkerCommand{"kvmark", "worker"}));
  EXPECT_THAT(command, Contains("KVMARK_SIMD=AVX2"));
  EXPECT_THAT(command, Contains("--callgrind-out-file=100%%pure/out"));
}

TEST_F(CallgrindTest, WithoutValgrindItSaysWhatToInstall) {
  const std::string path = getenv("PATH");
  setenv("PATH", folder_.path().c_str(), 1);
  try {
    check_valgrind();
    ADD_FAILURE() << "there is no valgrind in an empty folder";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("apt-get install valgrind"));
  }
  std::ofstream(folder_ / "valgrind") << "#!/bin/sh\n";
  std::filesystem::permissions(folder_ / "valgrind", std::filesystem::perms::owner_all);
  EXPECT_NO_THROW(check_valgrind());
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace kvmark
