#include "bench/doctor/speeds.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

using testing::ElementsAre;

constexpr int64_t kKib = 1 << 10, kMib = 1 << 20, kGib = 1 << 30;

std::vector<std::string> names_of(const std::vector<ReadSize>& sizes) {
  std::vector<std::string> names;
  for (const ReadSize& size : sizes) names.push_back(size.memory);
  return names;
}

TEST(ReadSizes, FollowTheCaches) {
  const auto sizes = read_sizes({{1, 48 * kKib, 1}, {2, kMib, 1}, {3, 128 * kMib, 8}}, 100 * kGib);
  ASSERT_THAT(names_of(sizes), ElementsAre("L2", "L3", "DRAM"));
  EXPECT_EQ(sizes[0].bytes, kMib / 2);
  EXPECT_TRUE(sizes[0].each_thread);
  EXPECT_EQ(sizes[1].bytes, 64 * kMib);
  EXPECT_FALSE(sizes[1].each_thread);
  EXPECT_EQ(sizes[2].bytes, 512 * kMib);
}

TEST(ReadSizes, TakeNoMoreMemoryThanThereIs) {
  EXPECT_EQ(read_sizes({}, std::nullopt).back().bytes, 256 * kMib);
  EXPECT_EQ(read_sizes({{3, kGib, 64}}, 100 * kGib).back().bytes, 2 * kGib);
  EXPECT_EQ(read_sizes({{2, kMib, 1}}, 400 * kMib).back().bytes, 100 * kMib);
  // What is left would lie in a cache: it says nothing about memory.
  EXPECT_THAT(names_of(read_sizes({{3, 32 * kMib, 2}}, 100 * kMib)), ElementsAre("L3"));
}

TEST(ThreadCounts, DoubleUpToAll) {
  EXPECT_THAT(thread_counts(1), ElementsAre(1));
  EXPECT_THAT(thread_counts(2), ElementsAre(1, 2));
  EXPECT_THAT(thread_counts(6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(thread_counts(8), ElementsAre(1, 2, 4, 8));
}

TEST(Speeds, AreRatesForEachSizeAndThreadCount) {
  const auto reads = measure_reads({{"L2", 64 * kKib, true}, {"L3", kMib, false}}, {1, 2});
  ASSERT_EQ(reads.size(), 4);
  EXPECT_EQ(reads[1].memory, "L2");
  EXPECT_EQ(reads[1].threads, 2);
  EXPECT_EQ(reads[2].bytes, kMib);
  for (const ReadSpeed& speed : reads) {
    EXPECT_TRUE(std::isfinite(speed.gb_per_s));
    EXPECT_GT(speed.gb_per_s, 0);
  }
}

TEST(Speeds, AreRatesForEachSimdTarget) {
  std::set<std::string> names;
  for (const FmaSpeed& speed : measure_fma({1})) {
    EXPECT_TRUE(std::isfinite(speed.gflop_per_s));
    EXPECT_GT(speed.gflop_per_s, 0);
    EXPECT_EQ(speed.threads, 1);
    names.insert(speed.simd);
  }
  EXPECT_EQ(names.size(), simd_targets().size());
  EXPECT_TRUE(names.count(std::string(simd_target())));
}

}  // namespace
}  // namespace kvmark
