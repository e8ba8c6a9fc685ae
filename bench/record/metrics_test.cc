#include "bench/record/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "bench/record/profiler.h"
#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

TEST(Fields, AreUniqueAndSaidInWords) {
  std::set<std::string_view> paths;
  for (const RecordField& field : record_fields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path << " stands twice";
    EXPECT_EQ(field.definition.back(), '.') << field.path;
    EXPECT_EQ(field.definition.find('|'), std::string_view::npos) << field.path;
    EXPECT_FALSE(field.title.empty()) << field.path;
  }
}

TEST(Fields, UnitAndPathAgree) {
  const std::pair<std::string_view, std::string_view> units[] = {{"_ms", "ms"},
                                                                 {"_bytes", "bytes"},
                                                                 {"_tok_per_s", "tokens/s"},
                                                                 {"_gb_per_s", "GB/s"},
                                                                 {"_gflop_per_s", "GFLOP/s"}};
  for (const RecordField& field : record_fields()) {
    for (const auto& [suffix, unit] : units) {
      if (!field.path.ends_with(suffix) || field.role != FieldRole::metric) continue;
      EXPECT_EQ(field.unit, unit) << field.path;
    }
  }
}

TEST(Fields, SpeedsAreBetterWhenBigger) {
  EXPECT_EQ(find_record_field("throughput.decode_tok_per_s")->better, Better::bigger);
  EXPECT_EQ(find_record_field("latency.tpot_ms")->better, Better::smaller);
  EXPECT_EQ(find_record_field("memory.kv_live_bytes")->certainty, Certainty::exact);
}

TEST(Fields, WhatDecidesHasADirection) {
  for (const RecordField& field : record_fields()) {
    if (field.gate == Gate::shown) continue;
    EXPECT_NE(field.better, Better::none) << field.path;
    EXPECT_EQ(field.role, FieldRole::metric) << field.path;
    EXPECT_EQ(field.gate == Gate::time, field.certainty == Certainty::noisy) << field.path;
  }
}

TEST(Fields, SummaryPartsAreThoseOfTheStatistics) {
  const auto json = to_json(Summary{});
  ASSERT_EQ(json.size(), summary_parts().size());
  size_t i = 0;
  for (const auto& [key, value] : json.items()) EXPECT_EQ(key, summary_parts()[i++]);
}

TEST(Fields, ProfileHasEveryPhaseInTheProfilersOrder) {
  const auto of_profiler = StepProfiler().profile();
  const auto of_record = empty_record()["profile"];
  EXPECT_EQ(of_profiler.dump(), of_record.dump());
}

TEST(MetricsManual, HoldsTheTable) {
  std::ifstream file(KVMARK_SOURCE_DIR "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = "<!-- metrics:begin -->\n", end = "<!-- metrics:end -->";
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string now =
      text.substr(0, from + begin.size()) + metrics_markdown() + text.substr(to);
  const std::string copy = ::testing::TempDir() + "metrics.md";
  std::ofstream(copy) << now;
  EXPECT_TRUE(text == now) << "copy " << copy << " over docs/metrics.md";
}

}  // namespace
}  // namespace kvmark
