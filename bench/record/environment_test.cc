#include "bench/record/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kvmark {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A made-up /proc, /sys and /sys/fs/cgroup.
class FakeMachine : public ::testing::Test {
 protected:
  FakeMachine() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(::testing::TempDir()) / ("kvmark_machine_" + std::string(info->name()));
    fs::remove_all(root_);
  }
  ~FakeMachine() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  MachineState sample() const {
    return sample_machine(
        {(root_ / "proc").string(), (root_ / "cgroup").string(), (root_ / "sys").string()});
  }

  fs::path root_;
};

std::vector<std::string> unstable(const MachineState& machine) {
  EnvironmentInput input;
  input.machine = machine;
  return environment(input)["unstable"].get<std::vector<std::string>>();
}

TEST_F(FakeMachine, WhatCannotBeFoundOutIsNull) {
  unsetenv("OPENBLAS_CORETYPE");
  const MachineState machine = sample();
  EXPECT_FALSE(machine.load || machine.cpu_quota || machine.governor || machine.vm);
  EXPECT_FALSE(machine.huge_pages.has_value());
  EnvironmentInput input;
  input.machine = machine;
  const auto env = environment(input);
  for (const char* key : {"load", "governor", "huge_pages", "vm", "started", "blas"}) {
    EXPECT_TRUE(env[key].is_null()) << key;
  }
  EXPECT_THAT(unstable(machine), IsEmpty());
}

TEST_F(FakeMachine, IsReadFromTheSystemsFiles) {
  write("proc/loadavg", "1.75 0.50 0.25 2/300 1234\n");
  write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor avx2\n");
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/cpu.max", "150000 100000\n");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  const MachineState machine = sample();
  EXPECT_EQ(machine.load, 1.75);
  EXPECT_EQ(machine.cpu_quota, 1.5);
  EXPECT_EQ(machine.governor, "powersave");
  EXPECT_EQ(machine.vm, true);
  EXPECT_EQ(machine.huge_pages, true);
  write("cgroup/cpu.max", "max 100000\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_FALSE(sample().cpu_quota.has_value());
  EXPECT_EQ(sample().huge_pages, false);
}

TEST_F(FakeMachine, TheTightestQuotaOfAllGroupsCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/cpu.max", "50000 100000\n");
  write("cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(sample().cpu_quota, 0.5);
  write("proc/self/cgroup", "2:cpu:/a\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(sample().cpu_quota.has_value());
  write("cgroup/cpu/a/cpu.cfs_quota_us", "25000\n");
  write("cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(sample().cpu_quota, 0.25);
}

TEST(Environment, AVirtualMachineIsAFactAndNoDoubt) {
  EnvironmentInput input;
  input.machine.vm = true;
  EXPECT_EQ(environment(input)["vm"], true);
  EXPECT_THAT(unstable(input.machine), IsEmpty());
}

TEST(Environment, SaysWhatSpeaksAgainstTimings) {
  MachineState machine;
  machine.cores = 2;
  machine.load = 1.0;
  machine.governor = "performance";
  machine.cpu_quota = 2;
  EXPECT_THAT(unstable(machine), IsEmpty());
  machine.load = 1.26;
  machine.governor = "powersave";
  machine.cpu_quota = 1.5;
  machine.blas_coretype = "Haswell";
  EXPECT_THAT(unstable(machine),
              ElementsAre("CPU governor powersave", "load 1.3 on 2 cores before the run",
                          "CPU quota of 1.5 cores", HasSubstr("OPENBLAS_CORETYPE=Haswell")));
}

TEST_F(FakeMachine, SeesThatOpenBlasIsTold) {
  setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  EXPECT_EQ(sample().blas_coretype, "Haswell");
  unsetenv("OPENBLAS_CORETYPE");
  EXPECT_FALSE(sample().blas_coretype.has_value());
}

TEST(Environment, TakesTheStartAndFurtherDoubtsFromTheCaller) {
  EnvironmentInput input;
  input.started = "2026-01-31T12:34:56Z";
  input.blas = "SkylakeX";
  input.unstable = {"a doubt"};
  const auto env = environment(input);
  EXPECT_EQ(env["started"], "2026-01-31T12:34:56Z");
  EXPECT_EQ(env["blas"], "SkylakeX");
  EXPECT_THAT(env["unstable"], Contains("a doubt"));
}

}  // namespace
}  // namespace kvmark
