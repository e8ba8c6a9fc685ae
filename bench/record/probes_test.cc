#include "bench/record/probes.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/record/metrics.h"

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

TEST_F(FakeSystem, BusyIsAllThatIsNeitherIdleNorStolen) {
  write("proc/stat", "cpu  1 20 300 7000 9000 4 50 600 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n");
  const double tick_ms = 1e3 / sysconf(_SC_CLK_TCK);
  const Probes probes = sample_probes(paths());
  EXPECT_DOUBLE_EQ(*probes.machine_busy_ms, 375 * tick_ms);
  EXPECT_DOUBLE_EQ(*probes.steal_ms, 600 * tick_ms);
}

TEST_F(FakeSystem, ThrottlingOfAllAncestorsCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\n");
  write("cgroup/outer/inner/cpu.stat", "nr_throttled 1\nthrottled_usec 250\n");
  EXPECT_DOUBLE_EQ(*sample_probes(paths()).throttled_ms, 1.75);
  write("proc/self/cgroup", "3:cpu,cpuacct:/a\n0::/\n");
  write("cgroup/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 3000000\n");
  EXPECT_DOUBLE_EQ(*sample_probes(paths()).throttled_ms, 3);
}

TEST_F(FakeSystem, HeatOfCoresAndPackagesIsAddedUp) {
  const int cpu = sched_getcpu();
  const std::string folder = "sys/devices/system/cpu/cpu";
  for (int other = 0; other <= cpu; ++other) {
    write(folder + std::to_string(other) + "/thermal_throttle/core_throttle_count", "0\n");
  }
  EXPECT_EQ(sample_probes(paths()).thermal_throttles, 0);
  write(folder + std::to_string(cpu) + "/thermal_throttle/core_throttle_count", "3\n");
  write(folder + std::to_string(cpu) + "/thermal_throttle/package_throttle_count", "4\n");
  EXPECT_EQ(sample_probes(paths()).thermal_throttles, 7);
}

TEST_F(FakeSystem, WhatTheSystemDoesNotTellIsNull) {
  const Probes probes = sample_probes(paths());
  for (const char* key : {"migrations", "run_delay_ms", "machine_busy_ms", "steal_ms",
                          "throttled_ms", "thermal_throttles"}) {
    EXPECT_TRUE(to_json(probes)[key].is_null()) << key;
  }
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
  EXPECT_FALSE(probes_from_json({{"migrations", nullptr}}).migrations.has_value());
}

TEST(Probes, OfFrequenciesTheExtremesRemain) {
  const auto sample = [](double ghz) {
    Probes probes;
    probes.lowest_core_ghz = probes.highest_core_ghz = ghz;
    return probes;
  };
  const Probes total = (sample(3.5) - sample(4.0)) + (sample(3.75) - sample(4.25));
  EXPECT_EQ(total.lowest_core_ghz, 3.5);
  EXPECT_EQ(total.highest_core_ghz, 4.25);
}

// The record's fields and the probes are two lists of the same.
TEST(Probes, AreThoseOfTheRecord) {
  std::vector<std::string> of_record, of_probes;
  for (const RecordField& field : record_fields()) {
    if (field.path.starts_with("probes.")) of_record.emplace_back(field.path.substr(7));
  }
  const nlohmann::ordered_json probes = to_json(Probes());
  for (const auto& item : probes.items()) of_probes.push_back(item.key());
  EXPECT_EQ(of_probes, of_record);
}

TEST(Probes, SeeTheWorkInBetween) {
  const Probes before = sample_probes();
  volatile double sum = 0;
  while (*(sample_probes() - before).cpu_ms < 30) {
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  }
  const Probes during = sample_probes() - before;
  EXPECT_GE(*during.wall_ms + 1, 30) << "one thread";
  EXPECT_GT(*during.lowest_core_ghz, 0);
}

}  // namespace
}  // namespace kvmark
