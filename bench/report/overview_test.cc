#include "bench/report/overview.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/report/report.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRounds = 7;

// An ok row at attention level, with `ms` in each of its rounds.
Json row(const std::string& engine, double ms) {
  Json r = empty_record();
  r["group_run"] = "group@now";
  r["status"] = "ok";
  r["case"].update({{"engine", engine},
                    {"preset", nullptr},
                    {"model", "seed-gqa"},
                    {"level", "attention"},
                    {"layers", 8},
                    {"heads", 16},
                    {"kv_heads", 4},
                    {"head_dim", 64},
                    {"prompt_len", 4096},
                    {"gen_len", 5},
                    {"batch", 1},
                    {"threads", 2},
                    {"pool_order", "fresh"}});
  r["sampling"] = {{"rounds", kRounds}, {"interleaved", true}, {"stop_reason", "cap"}};
  r["samples"]["round"] = std::vector<double>(kRounds, ms);
  r["work"]["bandwidth_fraction"] = 0.9;
  r["work"]["bandwidth_fraction_ci95"] = {0.85, 0.95};
  return r;
}

std::vector<std::string> headings_of(const std::vector<Section>& sections) {
  std::vector<std::string> texts;
  for (const Section& section : sections) texts.push_back(section.heading);
  return texts;
}

// The rows of the table whose heading begins so, cells joined with " | "; the columns first.
std::vector<std::string> lines_of(const std::vector<Json>& records, const std::string& heading) {
  std::vector<std::string> lines;
  for (const Section& section : overview(records)) {
    if (!section.heading.starts_with(heading)) continue;
    std::vector<std::string> titles;
    for (const Heading& h : section.columns) titles.push_back(h.title);
    lines.push_back(fmt::format("{}", fmt::join(titles, " | ")));
    for (const Row& r : section.rows) {
      lines.push_back(fmt::format("{}", fmt::join(r.cells, " | ")));
    }
  }
  return lines;
}

TEST(Overview, PutsFormatsSideBySideForEachSettingAndLayout) {
  std::vector<Json> records = {row("contiguous/f16", 10), row("contiguous/int4:g32", 4),
                               row("paged:16/f16", 10), row("contiguous/f16", 20)};
  records[1]["work"]["bandwidth_fraction"] = 0.5;
  records[1]["work"]["bandwidth_fraction_ci95"] = nullptr;
  records[3]["case"]["heads"] = 32;
  records[3]["case"]["layers"] = 4;
  EXPECT_THAT(lines_of(records, "Attention, % of the read ceiling"),
              ElementsAre("heads | head_dim | layout | f16 | int4:g32",
                          "16:4 | 64 | contiguous | 90 (85–95) | 50",
                          "16:4 | 64 | paged:16 | 90 (85–95) | —",
                          "32:4 | 64 | contiguous | 90 (85–95) | —"));
  for (const std::string& text : {table(records), markdown(records)}) {
    EXPECT_THAT(text, HasSubstr("Attention, % of the read ceiling"));
  }
}

TEST(Overview, RowsThatDifferInASilentKeyKeepTheirOwnLines) {
  std::vector<Json> records = {row("contiguous/f16", 10), row("contiguous/f16", 10)};
  records[1]["case"]["layers"] = 4;
  records[1]["work"]["bandwidth_fraction"] = 1.1;
  records[1]["work"]["bandwidth_fraction_ci95"] = nullptr;
  EXPECT_THAT(lines_of(records, "Attention, % of the read ceiling"),
              ElementsAre("heads | head_dim | layout | f16", "16:4 | 64 | contiguous | 90 (85–95)",
                          "16:4 | 64 | contiguous | 110‡"));
  EXPECT_THAT(table(records), HasSubstr("‡: "));
}

TEST(Overview, RowsAreComparedWithinTheirOwnRun) {
  std::vector<Json> records = {row("contiguous/f16", 10), row("contiguous/int8:g32", 5),
                               row("contiguous/f16", 30), row("contiguous/int8:g32", 5)};
  for (Json* again : {&records[2], &records[3]}) (*again)["group_run"] = "another";
  EXPECT_THAT(lines_of(records, "Speed against contiguous/f16"),
              ElementsAre("heads | head_dim | layout | f16 | int8:g32",
                          "16:4 | 64 | contiguous | 1 | 2.00 (2.00–2.00)",
                          "16:4 | 64 | contiguous | 1 | 6.00 (6.00–6.00)"));
}

// Round by round 1, 2, …: the ratio of the medians would be 1.
TEST(Overview, SpeedsOfAGroupAreRatiosOfTheRoundsOfATurn) {
  std::vector<Json> records = {row("contiguous/f16", 0), row("contiguous/int8:g32", 0)};
  records[0]["samples"]["round"] = {2, 4, 6, 8, 10, 12, 14};
  records[1]["samples"]["round"] = {1, 2, 3, 8, 5, 6, 7};
  EXPECT_THAT(lines_of(records, "Speed against contiguous/f16"),
              ElementsAre("heads | head_dim | layout | f16 | int8:g32",
                          "16:4 | 64 | contiguous | 1 | 2.00 (1.00–2.00)"));
}

TEST(Overview, OtherSpeedsAreOfMediansAndMarked) {
  std::vector<Json> records = {row("contiguous/f16", 10), row("contiguous/int8:g32", 4)};
  records[1]["sampling"]["interleaved"] = false;
  EXPECT_THAT(lines_of(records, "Speed against contiguous/f16").back(), HasSubstr(" 2.50†"));
  EXPECT_THAT(table(records), HasSubstr("†: not measured side by side"));
}

TEST(Overview, PagesAreComparedInTheirOwnFormatAndOrder) {
  std::vector<Json> records = {row("contiguous/f16", 10), row("contiguous/int8:g32", 5),
                               row("paged:16/int8:g32", 6.25), row("contiguous/int8:g32", 5),
                               row("paged:16/int8:g32", 20)};
  for (Json* shuffled : {&records[3], &records[4]}) (*shuffled)["case"]["pool_order"] = "shuffled";
  records[4]["work"].update({{"page_bandwidth_fraction", 0.7},
                             {"page_read_ceiling_gb_per_s", 31.96},
                             {"read_ceiling_gb_per_s", 40}});
  EXPECT_THAT(lines_of(records, "Speed against one piece"),
              ElementsAre("heads | head_dim | pool_order | layout | int8:g32",
                          "16:4 | 64 | fresh | paged:16 | 0.80 (0.80–0.80)",
                          "16:4 | 64 | shuffled | paged:16 | 0.25 (0.25–0.25)"));
  EXPECT_THAT(lines_of(records, "Attention, % of the ceiling of shuffled pages"),
              ElementsAre("heads | head_dim | pool_order | layout | int8:g32",
                          "16:4 | 64 | shuffled | paged:16 | 70 of 32.0"));
  records[4]["work"]["read_ceiling_gb_per_s"] = 30;
  EXPECT_THAT(lines_of(records, "Attention, % of the ceiling of shuffled pages").back(),
              EndsWith("| 70 of 32.0¶"));
  EXPECT_THAT(table(records), HasSubstr("¶: shuffled pages were read faster"));
}

TEST(Overview, ShuffledPagesAreComparedWithFreshOnesThoughNoOtherLayoutIsThere) {
  std::vector<Json> records = {row("paged:16/f16", 10), row("paged:16/f16", 12.5)};
  records[1]["case"]["pool_order"] = "shuffled";
  records[1]["group_run"] = "another";
  EXPECT_THAT(lines_of(records, "Speed of shuffled pages against fresh ones"),
              ElementsAre("heads | head_dim | pool_order | layout | f16",
                          "16:4 | 64 | shuffled | paged:16 | 0.80†"));
  records[0]["case"]["engine"] = records[1]["case"]["engine"] = "contiguous/f16";
  EXPECT_THAT(lines_of(records, "Speed of shuffled pages"), IsEmpty()) << "there are no pages";
}

TEST(Overview, MarksDisturbedRowsAndNamesUnusualSettings) {
  std::vector<Json> records = {row("paged:16/f16", 10), row("paged:16/int8:g32", 5)};
  for (Json& record : records) record["case"]["pool_order"] = "shuffled";
  records[1]["env"]["unstable"] = {"steal"};
  records[1]["work"]["read_ceiling_gb_per_s"] = 40;
  EXPECT_THAT(lines_of(records, "Attention, % of the read ceiling"),
              ElementsAre("heads | head_dim | pool_order | layout | f16 | int8:g32",
                          "16:4 | 64 | shuffled | paged:16 | 90 (85–95) | 90 (85–95) of 40.0§"));
}

TEST(Overview, ThreadsAreComparedWithTheFewest) {
  std::vector<Json> records = {row("contiguous/f16", 19), row("contiguous/f16", 10)};
  records[0]["case"]["threads"] = 1;
  records[0]["group_run"] = "another";
  EXPECT_THAT(lines_of(records, "Speed against the fewest threads"),
              ElementsAre("heads | head_dim | threads | layout | f16",
                          "16:4 | 64 | 2 | contiguous | 1.90†"));
}

TEST(Overview, LeavesOutWhatSaysNothing) {
  std::vector<Json> records = {row("contiguous/f16", 10)};
  EXPECT_THAT(headings_of(overview(records)), ElementsAre(HasSubstr("of the read ceiling")));
  records[0]["samples"]["round"] = {1, 1, 1, 1, 1};
  EXPECT_THAT(overview(records), IsEmpty()) << "five rounds have no interval";
  records[0] = row("contiguous/f16", 10);
  records[0]["case"]["level"] = "model";
  EXPECT_THAT(overview(records), IsEmpty());
  records[0] = row("contiguous/f16", 10);
  records[0]["status"] = "failed";
  EXPECT_THAT(overview(records), IsEmpty());
}

}  // namespace
}  // namespace kvmark
