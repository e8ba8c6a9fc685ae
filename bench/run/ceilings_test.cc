#include "bench/run/ceilings.h"

#include <gtest/gtest.h>

#include "bench/run/run_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// What is measured for a case: the keys that are not null, each a positive number.
std::string measured(const Case& c) {
  ThreadPool pool(2);
  Ceilings ceilings(c, predict(c, 0), pool);
  const Json rates = ceilings.measure();
  std::string keys;
  for (const auto& [key, value] : rates.items()) {
    if (value.is_null()) continue;
    EXPECT_GT(value.get<double>(), 0) << key;
    keys += key + " ";
  }
  return keys;
}

TEST(Ceilings, AreThoseThatBoundTheCase) {
  EXPECT_EQ(measured(small_case("contiguous/f32")), "read_gb_per_s ");
  EXPECT_EQ(measured(small_case("paged:16/int8:g32")), "read_gb_per_s ");
  EXPECT_EQ(measured(small_case("recompute")), "fma_gflop_per_s ");
  Case shuffled = small_case("paged:16/f16");
  shuffled.pool_order = PoolOrder::shuffled;
  EXPECT_EQ(measured(shuffled), "read_gb_per_s page_read_gb_per_s ");
}

TEST(Ceilings, WithoutDecodeStepsThereAreNone) {
  for (const char* engine : {"contiguous/f32", "recompute"}) {
    Case c = small_case(engine);
    c.gen_len = 1;
    EXPECT_EQ(measured(c), "");
  }
}

TEST(Ceilings, HoldWhatWasPredicted) {
  Case c = small_case("paged:16/f16");
  c.pool_order = PoolOrder::shuffled;
  c.level = Level::attention;
  const Prediction predicted = predict(c, 0);
  ThreadPool pool(1);
  const Ceilings ceilings(c, predicted, pool);
  // Each rounded up: to a line of 64 bytes, and to a whole page.
  EXPECT_GE(ceilings.bytes(), 2 * predicted.ceiling_bytes);
  EXPECT_LT(ceilings.bytes(), 2 * predicted.ceiling_bytes + 64 + predicted.ceiling_page_bytes);
}

}  // namespace
}  // namespace kvmark
