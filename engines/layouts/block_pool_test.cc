#include "engines/layouts/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(BlockPool, HandsOutTheLowestFreeIdFirst) {
  BlockPool pool(4, std::nullopt);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_TRUE(pool.release(1));
  EXPECT_TRUE(pool.release(0));
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.take(), -1);
}

TEST(BlockPool, KeepsWhatWasGivenBack) {
  BlockPool pool(8, std::nullopt);
  for (int i = 0; i < 3; ++i) pool.take();
  pool.release(0);
  pool.release(2);
  EXPECT_EQ(pool.held(), 3);
  EXPECT_EQ(pool.used(), 1);
  EXPECT_EQ(pool.free(), 2);
  EXPECT_EQ(pool.available(), 7);
}

TEST(BlockPool, CountsReferences) {
  BlockPool pool(2, std::nullopt);
  const int id = pool.take();
  pool.share(id);
  EXPECT_EQ(pool.references(id), 2);
  EXPECT_FALSE(pool.release(id));
  EXPECT_EQ(pool.used(), 1);
  EXPECT_TRUE(pool.release(id));
  EXPECT_EQ(pool.used(), 0);
  EXPECT_THROW(pool.release(id), LogicError);
  EXPECT_THROW(pool.share(id), LogicError);
}

TEST(BlockPool, ShufflesToAPermutationOfItsSeed) {
  const auto order = [](uint64_t seed) {
    BlockPool pool(64, seed);
    std::vector<int> ids;
    for (int i = 0; i < 64; ++i) ids.push_back(pool.take());
    return ids;
  };
  std::vector<int> sorted(64);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_NE(order(1), sorted);
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(order(1), order(1));
  const auto ids = order(1);
  EXPECT_EQ(std::set<int>(ids.begin(), ids.end()).size(), 64u);
}

// alloc / fork / free at random against a plain list of owners.
TEST(BlockPool, IsNeverBothFreeAndOwned) {
  for (const std::optional<uint64_t> seed :
       {std::optional<uint64_t>(), std::optional<uint64_t>(9)}) {
    BlockPool pool(16, seed);
    std::vector<int> owned;  // an entry a reference
    std::mt19937 random(7);
    for (int i = 0; i < 5000; ++i) {
      const int what = static_cast<int>(random() % 3);
      const size_t at = owned.empty() ? 0 : random() % owned.size();
      if (what == 0) {
        const int id = pool.take();
        ASSERT_EQ(id < 0, std::set<int>(owned.begin(), owned.end()).size() == 16);
        ASSERT_EQ(std::count(owned.begin(), owned.end(), id), 0);
        if (id >= 0) owned.push_back(id);
      } else if (what == 1 && !owned.empty()) {
        pool.share(owned[at]);
        owned.push_back(owned[at]);
      } else if (!owned.empty()) {
        const int id = owned[at];
        owned.erase(owned.begin() + static_cast<std::ptrdiff_t>(at));
        ASSERT_EQ(pool.release(id), std::count(owned.begin(), owned.end(), id) == 0);
      }
      const std::set<int> distinct(owned.begin(), owned.end());
      ASSERT_EQ(pool.used(), static_cast<int>(distinct.size()));
      ASSERT_EQ(pool.used() + pool.available(), 16);
      for (const int id : distinct) {
        ASSERT_EQ(pool.references(id), std::count(owned.begin(), owned.end(), id));
      }
    }
  }
}

}  // namespace
}  // namespace kvmark
