#include "bench/record/metric_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/core/check.h"

namespace kvmark {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view name) {
  try {
    parse_metric(name);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(MetricName, OfASummaryIsAPart) {
  EXPECT_EQ(parse_metric("latency.itl_ms.p99").path(), "latency.itl_ms.p99");
  EXPECT_EQ(parse_metric("latency.itl_ms").path(), "latency.itl_ms.p50");
  EXPECT_EQ(parse_metric("memory.kv_live_bytes").path(), "memory.kv_live_bytes");
}

TEST(MetricName, ThatIsNoneNamesTheNearest) {
  EXPECT_THAT(error_of("latency.tpot"), HasSubstr("did you mean `latency.tpot_ms`"));
  EXPECT_THAT(error_of("latency.itl_ms.p42"), HasSubstr("expected one of: mean"));
  EXPECT_THAT(error_of("env.cpu"), HasSubstr("unknown metric"));
  EXPECT_THAT(error_of("memory.timeline"), HasSubstr("unknown metric"));
  EXPECT_THAT(error_of("memory.kv_live_bytes.p50"), HasSubstr("unknown metric"));
  EXPECT_THAT(error_of("work.read_ceiling_gb_per_s"), HasSubstr("neither bigger nor smaller"));
}

}  // namespace
}  // namespace kvmark
