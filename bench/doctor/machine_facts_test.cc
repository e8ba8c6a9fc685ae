#include "bench/doctor/machine_facts.h"

#include <gmock/gmock.h>

#include "bench/doctor/fake_system_testing.h"
#include "bench/doctor/system_files.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SystemFiles, ReadTheKernelsWaysOfWriting) {
  EXPECT_THAT(parse_cpu_list("0-2,5,8-9"), ElementsAre(0, 1, 2, 5, 8, 9));
  EXPECT_THAT(parse_cpu_list("3"), ElementsAre(3));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("none"), IsEmpty());
  EXPECT_EQ(bracketed("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed("always"), std::nullopt);
  EXPECT_EQ(bracketed(std::nullopt), std::nullopt);
  const std::string text = "MemTotalExtra: 1 kB\nMemTotal:   8000 kB\nflags\t\t: a b\nempty:\n";
  EXPECT_EQ(keyed_integer(text, "MemTotal"), 8000);
  EXPECT_EQ(keyed_text(text, "flags"), "a b");
  EXPECT_EQ(keyed_text(text, "empty"), std::nullopt);
  EXPECT_EQ(keyed_text(text, "none"), std::nullopt);
  EXPECT_EQ(keyed_text(std::nullopt, "flags"), std::nullopt);
  EXPECT_EQ(leading_integer("-1"), -1);
  EXPECT_EQ(leading_integer("max"), std::nullopt);
}

class MachineFactsTest : public FakeSystem {};

TEST_F(MachineFactsTest, AnEmptySystemSaysNothing) {
  const MachineFacts facts = look_at_machine(paths(), {0, 1});
  EXPECT_EQ(facts.processor, std::nullopt);
  EXPECT_EQ(facts.cpus_present, std::nullopt);
  EXPECT_EQ(facts.physical_cores, std::nullopt);
  EXPECT_EQ(facts.numa_nodes, std::nullopt);
  EXPECT_THAT(facts.isa, IsEmpty());
  EXPECT_THAT(facts.caches, IsEmpty());
  EXPECT_EQ(facts.turbo, std::nullopt);
  EXPECT_EQ(facts.frequency_mhz, std::nullopt);
  EXPECT_EQ(facts.max_frequency_mhz, std::nullopt);
  EXPECT_EQ(facts.huge_pages, std::nullopt);
  EXPECT_EQ(facts.memory_bytes, std::nullopt);
  EXPECT_EQ(facts.swap_used_bytes, std::nullopt);
  EXPECT_EQ(facts.clock_source, std::nullopt);
  EXPECT_EQ(facts.perf_event_paranoid, std::nullopt);
  EXPECT_EQ(facts.counters, std::nullopt);
}

TEST_F(MachineFactsTest, ReadsAServer) {
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A Processor\ncpu MHz\t\t: 2500.5\n"
        "flags\t\t: fpu avx2 avx512f avx512_vnni\n");
  write("proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
  write("proc/sys/kernel/perf_event_paranoid", "3\n");
  write("sys/devices/system/cpu/present", "0-7\n");
  for (const char* cpu : {"2", "3", "6"}) {
    write(std::string("sys/devices/system/cpu/cpu") + cpu + "/topology/thread_siblings_list",
          cpu == std::string("3") ? "3,7\n" : "2,6\n");
  }
  const std::string first = "sys/devices/system/cpu/cpu2/";
  write(first + "cpufreq/scaling_cur_freq", "3100000\n");
  write(first + "cpufreq/cpuinfo_max_freq", "3900000\n");
  const auto cache = [&](const char* index, const char* level, const char* type, const char* size,
                         const char* shared) {
    const std::string folder = first + "cache/" + index + "/";
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "size", size);
    write(folder + "shared_cpu_list", shared);
  };
  cache("index0", "1\n", "Data\n", "48K\n", "2,6\n");
  cache("index1", "1\n", "Instruction\n", "32K\n", "2,6\n");
  cache("index2", "3\n", "Unified\n", "36M\n", "0-7\n");
  cache("index3", "2\n", "Unified\n", "2048K\n", "2,6\n");
  write("sys/devices/system/node/node0/cpulist", "0-2,4-6\n");
  write("sys/devices/system/node/node1/cpulist", "3,7\n");
  write("sys/devices/system/node/node2/cpulist", "\n");
  write("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  write("sys/kernel/mm/transparent_hugepage/defrag", "always defer [never]\n");
  write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  write("sys/bus/event_source/devices/cpu/type", "4\n");

  const MachineFacts facts = look_at_machine(paths(), {2, 3, 6});
  EXPECT_EQ(facts.processor, "A Processor");
  EXPECT_EQ(facts.cpus_present, 8);
  EXPECT_EQ(facts.physical_cores, 2);
  EXPECT_EQ(facts.numa_nodes, 2);  // the third has no CPUs
  EXPECT_THAT(facts.isa, ElementsAre("avx2", "avx512f", "avx512_vnni"));
  ASSERT_EQ(facts.caches.size(), 3);
  EXPECT_EQ(facts.caches[0].bytes, 48 << 10);
  EXPECT_EQ(facts.caches[1].level, 2);
  EXPECT_EQ(facts.caches[1].cpus, 2);
  EXPECT_EQ(facts.caches[2].bytes, 36 << 20);
  EXPECT_EQ(facts.turbo, true);
  EXPECT_EQ(facts.frequency_mhz, 3100);
  EXPECT_EQ(facts.max_frequency_mhz, 3900);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.huge_page_defrag, "never");
  EXPECT_EQ(facts.memory_bytes, 100 << 10);
  EXPECT_EQ(facts.swap_used_bytes, 30 << 10);
  EXPECT_EQ(facts.clock_source, "tsc");
  EXPECT_EQ(facts.perf_event_paranoid, 3);
  EXPECT_EQ(facts.counters, true);
}

TEST_F(MachineFactsTest, OtherWaysToTellTheSame) {
  write("proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\ncpu MHz\t: 1500.5\n"
        "Model\t\t: A Board\n");
  write("sys/devices/system/cpu/cpufreq/boost", "0\n");
  write("sys/bus/event_source/devices/software/type", "1\n");
  const MachineFacts facts = look_at_machine(paths(), {0});
  EXPECT_EQ(facts.processor, "A Board");
  EXPECT_THAT(facts.isa, ElementsAre("asimddp", "i8mm"));
  EXPECT_EQ(facts.frequency_mhz, 1500.5);
  EXPECT_EQ(facts.turbo, false);
  EXPECT_EQ(facts.counters, false);
  write("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
  EXPECT_EQ(look_at_machine(paths(), {0}).counters, true);
}

class GroupLimitsTest : public FakeSystem {};

TEST_F(GroupLimitsTest, NoGroupsNoLimits) {
  const GroupLimits limits = group_limits(paths());
  EXPECT_EQ(limits.cpu_quota_cores, std::nullopt);
  EXPECT_EQ(limits.memory_limit_bytes, std::nullopt);
  EXPECT_EQ(limits.throttled_periods, std::nullopt);
  EXPECT_EQ(limits.throttled_ms, std::nullopt);
}

TEST_F(GroupLimitsTest, Version2TakesTheTightestAncestor) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/cpu.max", "150000 100000\n");
  write("cgroup/outer/memory.max", "1000\n");
  write("cgroup/outer/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_usec 2500\n");
  write("cgroup/outer/inner/cpu.max", "max 100000\n");
  write("cgroup/outer/inner/memory.max", "max\n");
  write("cgroup/outer/inner/cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n");
  const GroupLimits limits = group_limits(paths());
  EXPECT_EQ(limits.cpu_quota_cores, 1.5);
  EXPECT_EQ(limits.memory_limit_bytes, 1000);
  EXPECT_EQ(limits.throttled_periods, 4);
  EXPECT_EQ(limits.throttled_ms, 2.5);
}

TEST_F(GroupLimitsTest, InAContainerTheMountItselfIsTheGroup) {
  write("proc/self/cgroup", "0::/host/path/not/here\n");
  write("cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(group_limits(paths()).cpu_quota_cores, 0.5);
}

TEST_F(GroupLimitsTest, Version1HasAHierarchyForEachController) {
  write("proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/a\n0::/\n");
  write("cgroup/cpu/a/cpu.cfs_quota_us", "200000\n");
  write("cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  write("cgroup/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 3000000\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  write("cgroup/memory/a/memory.limit_in_bytes", "2000\n");
  const GroupLimits limits = group_limits(paths());
  EXPECT_EQ(limits.cpu_quota_cores, 2);
  EXPECT_EQ(limits.memory_limit_bytes, 2000);
  EXPECT_EQ(limits.throttled_periods, 2);
  EXPECT_EQ(limits.throttled_ms, 3);
}

}  // namespace
}  // namespace kvmark
