#include "bench/record/probes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys/fs/cgroup.
class FakeSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(::testing::TempDir()) / ("kvmark_" + std::string(info->name()));
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  SystemPaths paths() const {
    return {(root_ / "proc").string(), (root_ / "cgroup").string(), (root_ / "sys").string()};
  }

  fs::path root_;
};

constexpr int64_t kKib = 1024;

TEST_F(FakeSystem, StealIsTheEighthColumnOfAllProcessors) {
  EXPECT_FALSE(steal_ms(paths()).has_value());
  write("proc/stat", "cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 100 9 10\n");
  EXPECT_DOUBLE_EQ(steal_ms(paths()).value(), 250 * 1e3 / sysconf(_SC_CLK_TCK));
  write("proc/stat", "cpu  1 2 3 4 5 6 7\n");  // a kernel without the column
  EXPECT_FALSE(steal_ms(paths()).has_value());
}

TEST_F(FakeSystem, WithoutGroupsTheMachineCounts) {
  EXPECT_EQ(available_memory(paths()), 4000 * kKib);
  write("proc/meminfo", "");
  EXPECT_FALSE(available_memory(paths()).has_value());
}

TEST_F(FakeSystem, Version2TakesTheTightestAncestorAndAddsTheCache) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/memory.max", "1000000\n");
  write("cgroup/outer/memory.current", "600000\n");
  write("cgroup/outer/memory.stat", "inactive_file_extra 7\ninactive_file 50000\n");
  write("cgroup/outer/inner/memory.max", "max\n");
  write("cgroup/outer/inner/memory.current", "500000\n");
  EXPECT_EQ(available_memory(paths()), 450000);
}

TEST_F(FakeSystem, Version2InAContainerReadsTheMountItself) {
  write("proc/self/cgroup", "0::/host/path/not/here\n");
  write("cgroup/memory.max", "300000\n");
  write("cgroup/memory.current", "400000\n");
  EXPECT_EQ(available_memory(paths()), 0);
}

TEST_F(FakeSystem, Version1ReadsTheMemoryHierarchy) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/a\n");
  write("cgroup/memory/a/memory.limit_in_bytes", "2000000\n");
  write("cgroup/memory/a/memory.usage_in_bytes", "500000\n");
  write("cgroup/memory/a/memory.stat", "total_inactive_file 1000\n");
  EXPECT_EQ(available_memory(paths()), 1501000);
}

TEST_F(FakeSystem, AHugeVersion1LimitIsNoLimit) {
  write("proc/self/cgroup", "4:memory:/\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/memory.usage_in_bytes", "500000\n");
  EXPECT_EQ(available_memory(paths()), 4000 * kKib);
}

TEST_F(FakeSystem, ProcessMemoryReadsWholeKeys) {
  write("proc/self/status", "VmRSSx:\t 1 kB\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\n");
  EXPECT_EQ(process_memory(paths()).rss_bytes, 200 * kKib);
  EXPECT_EQ(process_memory(paths()).peak_rss_bytes, 300 * kKib);
  EXPECT_EQ(process_memory(paths()).huge_page_bytes, std::nullopt) << "no file";
  write("proc/self/smaps_rollup",
        "Rss:\t 200 kB\nAnonHugePages:\t  2048 kB\nFilePmdMapped: 0 kB\n");
  EXPECT_EQ(process_memory(paths()).huge_page_bytes, 2048 * kKib);
}

TEST_F(FakeSystem, ProbesAddTheThreads) {
  write("proc/self/task/1/schedstat", "100 2000000 3\n");
  write("proc/self/task/2/schedstat", "100 500000 3\n");
  write("proc/self/task/1/sched", "se.nr_migrations       :      4\n");
  write("proc/self/task/2/sched", "x : 1\nse.nr_migrations   :   3\n");
  EXPECT_DOUBLE_EQ(*sample_probes(paths()).run_delay_ms, 2.5);
  EXPECT_EQ(sample_probes(paths()).migrations, 7);
}

TEST_F(FakeSystem, WhatTheSystemDoesNotTellIsNull) {
  const Probes probes = sample_probes(paths());
  EXPECT_TRUE(to_json(probes)["migrations"].is_null());
  EXPECT_TRUE(to_json(probes)["run_delay_ms"].is_null());
  EXPECT_TRUE(to_json(probes)["minor_faults"].is_number_integer());
  EXPECT_FALSE((probes - probes).migrations.has_value());
}

TEST(Probes, CountPageFaultsOfTouchedMemory) {
  const Probes before = sample_probes();
  std::vector<char> memory(16 << 20);
  std::memset(memory.data(), 1, memory.size());
  const Probes during = sample_probes() - before;
  // Huge pages need 8 faults, ordinary ones 4096.
  EXPECT_GE(during.minor_faults, 8 + memory[5] - 1);
  EXPECT_GE(process_memory().peak_rss_bytes, int64_t{16} << 20);
}

TEST(Probes, JsonRoundTripAndSum) {
  Probes probes;
  probes.run_delay_ms = 1.5;
  probes.migrations = 2;
  const Probes again = probes_from_json(to_json(probes));
  EXPECT_EQ(to_json(again), to_json(probes));
  EXPECT_EQ(*(again + probes).run_delay_ms, 3.0);
  EXPECT_EQ((again + probes).migrations, 4);
  EXPECT_FALSE(probes_from_json(nlohmann::ordered_json::object()).migrations.has_value());
}

}  // namespace
}  // namespace kvmark
