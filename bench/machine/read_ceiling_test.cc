#include "bench/machine/read_ceiling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "engines/codecs/simd.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

std::vector<uint64_t> words_of(const Buffer& buffer) {
  std::vector<uint64_t> words(buffer.size() / sizeof(uint64_t));
  std::memcpy(words.data(), buffer.data(), buffer.size());
  return words;
}

uint64_t sum_of(const std::vector<uint64_t>& words) {
  return std::accumulate(words.begin(), words.end(), uint64_t{0});
}

TEST(ReadCeiling, EveryVariantReadsEveryByteOnce) {
  // Lines: fewer than streams or threads, odd ones, some that no step divides, several parts.
  for (const int64_t bytes : {1, 64, 200, 65 * 64, 4099 * 64, 3'000'000}) {
    for (const int64_t page_bytes : {0, 64, 100, 1024, 2112, 8192}) {
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        ReadCeiling ceiling(pool, bytes, page_bytes);
        const uint64_t expected = sum_of(words_of(ceiling.buffer()));
        for (const ReadVariant variant : ReadCeiling::kVariants) {
          EXPECT_EQ(ceiling.sum(variant), expected)
              << bytes << " bytes, pages of " << page_bytes << ", threads " << threads
              << ", streams " << variant.streams << ", prefetch " << variant.prefetch;
        }
      }
    }
  }
}

TEST(ReadCeiling, WordsDifferSoThatASumTellsThem) {
  ThreadPool pool(2);
  const ReadCeiling ceiling(pool, 1 << 20);
  const std::vector<uint64_t> words = words_of(ceiling.buffer());
  EXPECT_EQ(std::set<uint64_t>(words.begin(), words.end()).size(), words.size());
}

TEST(ReadCeiling, RoundsUpToLinesAndPages) {
  ThreadPool pool(1);
  EXPECT_EQ(ReadCeiling(pool, 1).bytes(), 64);
  EXPECT_EQ(ReadCeiling(pool, 65).bytes(), 128);
  EXPECT_EQ(ReadCeiling(pool, 1000, 100).bytes(), 1024);  // pages of 128
  EXPECT_EQ(ReadCeiling(pool, 10, 4096).bytes(), 4096);
}

TEST(ReadCeiling, MeasuresARate) {
  ThreadPool pool(2);
  for (const int64_t page_bytes : {0, 1024}) {
    ReadCeiling ceiling(pool, 1 << 20, page_bytes);
    const double rate = ceiling.measure();
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 0);
  }
}

TEST(ReadCeiling, RefusesSizesThatAreNone) {
  ThreadPool pool(1);
  EXPECT_THROW(ReadCeiling(pool, 0), LogicError);
  EXPECT_THROW(ReadCeiling(pool, 64, -1), LogicError);
}

TEST(ReadKernel, AgreesOnEverySimdTarget) {
  ThreadPool pool(1);
  const ReadCeiling ceiling(pool, 7 * 5 * 64);
  const std::vector<uint64_t> words = words_of(ceiling.buffer());
  // Runs of five lines, in another order, the third left out.
  const std::vector<int32_t> order = {6, 1, 0, 5, 3, 4};
  uint64_t expected = sum_of(words);
  for (int i = 0; i < 5 * 8; ++i) expected -= words[2 * 5 * 8 + i];
  for (const int64_t target : simd_targets()) {
    for (const ReadVariant variant : ReadCeiling::kVariants) {
      EXPECT_EQ(read_kernel(target, variant)(ceiling.buffer().data(), order.data(), 6, 5 * 64),
                expected)
          << "target " << target << ", streams " << variant.streams;
    }
  }
}

TEST(ReadKernel, RefusesOtherNumbersOfStreams) {
  EXPECT_THROW(read_kernel(chosen_simd_target(), {3, true}), LogicError);
}

}  // namespace
}  // namespace kvmark
