#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/report/report_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Reads RFC 4180 text the strict way.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string cell;
  bool in_quotes = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        in_quotes = false;
      }
    } else if (c == '"') {
      in_quotes = true;
    } else if (c == ',' || c == '\n') {
      rows.back().push_back(std::move(cell));
      cell.clear();
      if (c == '\n') rows.emplace_back();
    } else {
      cell += c;
    }
  }
  rows.pop_back();
  return rows;
}

std::string cell_of(const std::vector<std::vector<std::string>>& rows, size_t number,
                    const std::string& heading) {
  for (size_t i = 0; i < rows[0].size(); ++i) {
    if (rows[0][i] == heading) return rows[number].at(i);
  }
  ADD_FAILURE() << "no column " << heading;
  return "";
}

TEST(Csv, HasARowARecordAndUnitsInTheHeadings) {
  std::vector<Json> records = quickstart();
  records.push_back(bad("paged:16/f32", "failed", "said \"no\", twice\nthen died"));
  records[0]["latency"]["itl_ms"]["p50_ci95"] = {79.5, 80.5};
  records[0]["env"]["unstable"] = {"load", "virtual machine"};
  const auto rows = parse_csv(csv(records));
  ASSERT_EQ(rows.size(), 5u);
  for (const auto& cells : rows) EXPECT_EQ(cells.size(), rows[0].size());
  EXPECT_EQ(cell_of(rows, 1, "case.engine"), "recompute");
  EXPECT_EQ(cell_of(rows, 1, "latency.itl_ms.p50_ci95.high [ms]"), "80.5");
  EXPECT_EQ(cell_of(rows, 2, "throughput.decode_tok_per_s [tokens/s]"), "1000.0");
  EXPECT_EQ(cell_of(rows, 2, "latency.itl_ms.n"), "510");
  EXPECT_EQ(cell_of(rows, 2, "latency.ttft_ms.p99 [ms]"), "");
  EXPECT_EQ(cell_of(rows, 2, "case.repeat_kv"), "false");
  EXPECT_EQ(cell_of(rows, 1, "env.unstable"), "load; virtual machine");
  EXPECT_EQ(cell_of(rows, 4, "reason"), "said \"no\", twice\nthen died");
}

TEST(Csv, LeavesOutTheListsBehindTheFigures) {
  std::vector<Json> records = quickstart();
  records[0]["case"]["rope"] = {{"theta", 10000.0}};
  EXPECT_THAT(csv(records), AllOf(Not(HasSubstr("samples.itl_ms")), Not(HasSubstr("rope"))));
  EXPECT_EQ(parse_csv(csv({})).size(), 1u);  // the headings
}

}  // namespace
}  // namespace kvmark
