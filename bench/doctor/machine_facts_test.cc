#include "bench/doctor/machine_facts.h"

#include <gmock/gmock.h>

#include "bench/doctor/fake_system_testing.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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
  EXPECT_EQ(facts.max_frequency_ghz, std::nullopt);
  EXPECT_EQ(facts.huge_pages, std::nullopt);
  EXPECT_EQ(facts.state.memory_bytes, std::nullopt);
  EXPECT_EQ(facts.swap_used_bytes, std::nullopt);
  EXPECT_EQ(facts.clock_source, std::nullopt);
  EXPECT_EQ(facts.perf_event_paranoid, std::nullopt);
  EXPECT_EQ(facts.counters, std::nullopt);
}

TEST_F(MachineFactsTest, ReadsAServer) {
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A Processor\n"
        "flags\t\t: fpu avx2 avx512f avx512_vnni\n");
  write("proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
  write("proc/sys/kernel/perf_event_paranoid", "3\n");
  write("sys/devices/system/cpu/present", "0-7\n");
  for (const char* cpu : {"2", "3", "6"}) {
    write(std::string("sys/devices/system/cpu/cpu") + cpu + "/topology/thread_siblings_list",
          cpu == std::string("3") ? "3,7\n" : "2,6\n");
  }
  const std::string first = "sys/devices/system/cpu/cpu2/";
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
  EXPECT_DOUBLE_EQ(*facts.max_frequency_ghz, 3.9);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.huge_page_defrag, "never");
  EXPECT_EQ(facts.state.memory_bytes, 100 << 10);
  EXPECT_EQ(facts.swap_used_bytes, 30 << 10);
  EXPECT_EQ(facts.clock_source, "tsc");
  EXPECT_EQ(facts.perf_event_paranoid, 3);
  EXPECT_EQ(facts.counters, true);
}

TEST_F(MachineFactsTest, OtherWaysToTellTheSame) {
  write("proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\n"
        "Model\t\t: A Board\n");
  write("sys/devices/system/cpu/cpufreq/boost", "0\n");
  write("sys/bus/event_source/devices/software/type", "1\n");
  const MachineFacts facts = look_at_machine(paths(), {0});
  EXPECT_EQ(facts.processor, "A Board");
  EXPECT_THAT(facts.isa, ElementsAre("asimddp", "i8mm"));
  EXPECT_EQ(facts.turbo, false);
  EXPECT_EQ(facts.counters, false);
  write("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
  EXPECT_EQ(look_at_machine(paths(), {0}).counters, true);
}

TEST_F(MachineFactsTest, TheTightestGroupLimitsTheMemory) {
  write("proc/meminfo", "MemTotal: 8 kB\n");
  write("proc/self/cgroup", "4:memory:/a\n0::/outer/inner\n");
  write("cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // none
  write("cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(look_at_machine(paths(), {0}).memory_limit_bytes, std::nullopt);
  write("cgroup/memory/memory.limit_in_bytes", "5000\n");
  write("cgroup/outer/memory.max", "4000\n");
  EXPECT_EQ(look_at_machine(paths(), {0}).memory_limit_bytes, 4000);
}

TEST_F(MachineFactsTest, WhatIsNoListOrChoiceIsUnknown) {
  write("sys/devices/system/cpu/present", "0-2,5,8-9\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always\n");
  const MachineFacts facts = look_at_machine(paths(), {0});
  EXPECT_EQ(facts.cpus_present, 6);
  EXPECT_EQ(facts.huge_pages, std::nullopt);
}

}  // namespace
}  // namespace kvmark
