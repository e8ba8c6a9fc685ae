#include "bench/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "bench/page/assets.h"
#include "bench/report/report_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

PageContent content_of(std::vector<Json> rows, const std::string& name = "results/quick") {
  PageContent content;
  content.runs = {{name, rows.size(), nullptr}};
  content.rows = std::move(rows);
  return content;
}

// What stands between the two texts, which must be there.
std::string between(const std::string& text, const std::string& start, const std::string& end) {
  const size_t from = text.find(start);
  const size_t to = text.find(end, from + start.size());
  if (from == std::string::npos || to == std::string::npos) {
    ADD_FAILURE() << "no " << start << " … " << end;
    return "";
  }
  return text.substr(from + start.size(), to - from - start.size());
}

std::string data_in(const std::string& html) {
  return between(html, "id=\"kvmark-data\">", "</script>");
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Page, EveryPlaceholderIsFilled) {
  const std::string html = page(content_of(quickstart()));
  for (const char* placeholder : {"@title@", "@style@", "@data@", "@chart@", "@script@"}) {
    EXPECT_EQ(count(page_template(), placeholder), 1u) << placeholder;
    EXPECT_EQ(count(html, placeholder), 0u) << placeholder;
  }
  EXPECT_NE(html.find(chart_library()), std::string::npos);
  EXPECT_NE(html.find(page_script()), std::string::npos);
  EXPECT_NE(html.find(page_style()), std::string::npos);
  EXPECT_THAT(between(html, "<title>", "</title>"), HasSubstr("quick"));
}

TEST(Page, DataAreJsonOnOneLine) {
  const PageContent content = content_of(quickstart());
  const std::string text = data_in(page(content));
  EXPECT_EQ(count(text, "\n"), 2u) << "one before and one behind it";
  const Json data = Json::parse(text);
  EXPECT_EQ(data["schema"], "kvmark-page/1");
  EXPECT_EQ(data["rows"], page_data(content)["rows"]);
}

TEST(Page, NoTextCanEndItsElement) {
  const std::string hostile = "</script><script>alert(1)</script><!--";
  std::vector<Json> rows = quickstart();
  for (Json& record : rows) record["case"]["model"] = hostile;
  rows[1]["case"]["preset"] = hostile;
  rows[2]["status"] = "failed";
  rows[2]["reason"] = hostile;
  const std::string html = page(content_of(rows, hostile));
  EXPECT_EQ(count(html, "</script"), count(page_template(), "</script"));
  EXPECT_EQ(count(html, "<script"), count(page_template(), "<script"));
  const Json data = Json::parse(data_in(html));
  EXPECT_EQ(data["rows"][1]["label"], hostile);
  EXPECT_EQ(data["rows"][2]["reason"], hostile);
}

TEST(Page, PlaceholdersInNamesAreNames) {
  const std::string html = page(content_of(quickstart(), "@data@ & @script@"));
  EXPECT_THAT(between(html, "<title>", "</title>"), HasSubstr("@data@ &amp; @script@"));
  EXPECT_EQ(Json::parse(data_in(html))["title"], "@data@ & @script@");
}

TEST(Page, BytesThatAreNoTextBecomeText) {
  std::vector<Json> rows = quickstart();
  rows[0]["case"]["model"] = "model\xff";
  const std::string html = page(content_of(rows, "run\xff"));
  EXPECT_EQ(count(html, "\xff"), 0u);
  EXPECT_THAT(between(html, "<title>", "</title>"), HasSubstr("run\xEF\xBF\xBD"));
}

TEST(Page, TwoHundredLongRowsStayBelowThreeMebibytes) {
  std::vector<Json> rows;
  for (int i = 0; i < 200; ++i) {
    Json record = row("paged:16/int8:g32", "", 1000 + i / 7.0);
    record["case_id"] = std::to_string(i);
    std::vector<double> gaps;
    for (int gap = 0; gap < 4096; ++gap) gaps.push_back(1 / (1 + gap / 4096.0 + i));
    record["case"]["gen_len"] = 4097;
    record["samples"]["itl_ms"] = gaps;
    record["memory"]["timeline"] = Json::array();
    for (int position = 0; position < 300; ++position) {
      record["memory"]["timeline"].push_back({{"position", position},
                                              {"live_bytes", 1234567890 + position},
                                              {"reserved_bytes", 2345678901 + position}});
    }
    for (const char* part : {"profile", "probes", "work"}) {
      for (const auto& item : record[part].items()) record[part][item.key()] = i / 7.0;
    }
    rows.push_back(std::move(record));
  }
  EXPECT_LT(page(content_of(rows)).size(), 3u << 20);
}

}  // namespace
}  // namespace kvmark
