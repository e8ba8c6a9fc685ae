#include "bench/record/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <fstream>
#include <limits>
#include <locale>
#include <string>
#include <vector>

#include "bench/record/environment.h"
#include "bench/record/metrics.h"
#include "bench/record/stats.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A whole record with figures everywhere that a CPU row has some.
Json good_record() {
  Json r = empty_record();
  r["run_id"] = "run";
  r["case_id"] = "0123456789abcdef";
  r["group_run"] = "run/0";
  r["status"] = "ok";
  r["case"]["engine"] = "contiguous/f32";
  r["case"]["level"] = "model";
  r["case"]["gen_len"] = 8;
  r["case"]["repeat_kv"] = false;  // not in the table: the plan's own
  r["sampling"] = {{"rounds", 3}, {"interleaved", true}, {"stop_reason", "cap"}};
  r["latency"]["itl_ms"] = to_json(summarize(std::vector{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  r["memory"]["kv_live_bytes"] = 4096;
  r["work"]["bandwidth_fraction_ci95"] = {0.5, 0.6};
  r["samples"] = {
      {"round", {1.5, 2, 9}}, {"outlier_rounds", {2}}, {"itl_ms", {1, 2.5}}, {"itl_stride", 1}};
  r["events"] = {{{"kind", "grow"}, {"position", 5}}};
  r["env"] = environment({});
  return r;
}

TEST(ValidateRecord, AcceptsAWholeRecord) {
  EXPECT_THAT(validate_record(good_record()), IsEmpty());
}

TEST(ValidateRecord, AcceptsARowThatNeverRan) {
  Json r = empty_record();
  r["run_id"] = "run";
  r["case_id"] = "0123456789abcdef";
  r["status"] = "skipped";
  r["reason"] = "no CUDA device";
  EXPECT_THAT(validate_record(r), IsEmpty());
}

TEST(ValidateRecord, NamesWhatIsMissing) {
  Json r = good_record();
  r.erase("digest");
  r["latency"].erase("ttft_ms");
  r["env"] = nullptr;
  EXPECT_THAT(validate_record(r), ElementsAre("env: expected an object, got null",
                                              "digest: missing", "latency.ttft_ms: missing"));
}

TEST(ValidateRecord, NamesUnknownKeysButLeavesTheCaseOpen) {
  Json r = good_record();
  r["latency"]["ttfb_ms"] = 1;
  r["extra"] = 1;
  r["case"]["anything"] = {{"goes", 1}};
  EXPECT_THAT(validate_record(r),
              ElementsAre("latency.ttfb_ms: unknown key", "extra: unknown key"));
}

TEST(ValidateRecord, NamesWrongTypes) {
  Json r = good_record();
  r["memory"]["kv_live_bytes"] = 1.5;
  r["sampling"]["interleaved"] = "yes";
  r["samples"]["outlier_rounds"][0] = 2.5;
  r["samples"]["itl_ms"][1] = "2.5";
  r["run_id"] = nullptr;
  EXPECT_THAT(validate_record(r),
              ElementsAre("run_id: may not be null",
                          "sampling.interleaved: expected true or false, got string",
                          "memory.kv_live_bytes: expected an integer, got number",
                          "samples.outlier_rounds[0]: expected an integer, got number",
                          "samples.itl_ms[1]: expected a number, got string"));
}

TEST(ValidateRecord, LooksIntoSummariesAndIntervals) {
  Json r = good_record();
  r["latency"]["itl_ms"].erase("p99");
  r["latency"]["itl_ms"]["p75"] = 1;
  r["latency"]["itl_ms"]["n"] = -1;
  r["latency"]["itl_ms"]["p50_ci95"] = {1};
  r["latency"]["ttft_ms"] = 3.5;
  r["work"]["bandwidth_fraction_ci95"] = {0.6, 0.5};
  EXPECT_THAT(validate_record(r),
              ElementsAre("latency.ttft_ms: expected a summary object, got number",
                          "latency.itl_ms.n: expected a count, got number",
                          "latency.itl_ms.p50_ci95: expected [low, high] or null",
                          "latency.itl_ms.p99: missing", "latency.itl_ms.p75: unknown key",
                          "work.bandwidth_fraction_ci95: low is above high"));
}

TEST(ValidateRecord, RefusesNanAndInfinityWhereverTheyAre) {
  Json r = good_record();
  r["throughput"]["decode_tok_per_s"] = std::nan("");
  r["samples"]["round"][0] = std::numeric_limits<double>::infinity();
  r["events"][0]["bytes"] = std::nan("");
  EXPECT_THAT(validate_record(r),
              ElementsAre(HasSubstr("throughput.decode_tok_per_s: not a finite"),
                          HasSubstr("events[0].bytes: not a finite"),
                          HasSubstr("samples.round[0]: not a finite")));
}

TEST(ValidateRecord, AStatusAndItsReasonBelongTogether) {
  Json r = good_record();
  r["status"] = "failed";
  EXPECT_THAT(validate_record(r), ElementsAre("reason: missing where the status is not ok"));
  r["status"] = "ok";
  r["reason"] = "but";
  EXPECT_THAT(validate_record(r), ElementsAre("reason: must be null where the status is ok"));
  r["status"] = "fine";
  EXPECT_THAT(validate_record(r),
              ElementsAre("status: \"fine\" is none of ok|skipped|failed|invalid"));
}

TEST(ValidateRecord, SurvivesWhatIsNoRecord) {
  EXPECT_THAT(validate_record(Json::array()), ElementsAre("record: expected an object, got array"));
  EXPECT_FALSE(validate_record(Json::object()).empty());
}

TEST(RecordSchema, IsTheCommittedFile) {
  std::ifstream file(KVMARK_SOURCE_DIR "/results/record-schema.json");
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  const std::string now = record_schema().dump(2) + "\n";
  const std::string copy = ::testing::TempDir() + "record-schema.json";
  std::ofstream(copy) << now;
  EXPECT_TRUE(committed == now) << "copy " << copy << " over results/record-schema.json";
}

TEST(RecordSchema, ListsEveryFieldAsRequired) {
  const Json schema = record_schema();
  const Json& ttft = schema["properties"]["latency"]["properties"]["ttft_ms"];
  EXPECT_EQ(ttft["anyOf"][0]["$ref"], "#/$defs/summary");
  EXPECT_THAT(ttft["description"].get<std::string>(), HasSubstr("Unit: ms"));
  EXPECT_EQ(schema["properties"]["latency"]["required"].size(), 5u);
  EXPECT_EQ(schema["properties"]["status"]["enum"].size(), 4u);
  EXPECT_EQ(schema["properties"]["env"]["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["case"]["additionalProperties"], true);
}

// A locale with a comma as decimal point and points between thousands, for streams and, where the
// system has one, for C.
class CommaLocale {
 public:
  CommaLocale() : cpp_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"}) {
      if (std::setlocale(LC_ALL, name)) break;
    }
  }
  ~CommaLocale() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale cpp_;
};

class RecordFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "kvmark_records_" + info->name();
    std::filesystem::remove_all(folder_);
    path_ = folder_ + "/run/records.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) {
    std::filesystem::create_directories(folder_ + "/run");
    std::ofstream(path_, std::ios::binary) << text;
  }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // No more than what makes a row one of ours.
  static Json row(int id) {
    return {{"schema", kRecordSchema},
            {"status", "ok"},
            {"case_id", std::to_string(id)},
            {"case", Json::object()}};
  }
  static std::string line(int id) { return row(id).dump() + "\n"; }
  std::string usage_error() const {
    try {
      read_records(path_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  std::string folder_, path_;
};

TEST_F(RecordFiles, AppendingMakesTheFolderAndReadingGivesTheSame) {
  append_record(path_, good_record());
  append_record(path_, good_record());
  const RecordFile file = read_records(path_);
  ASSERT_EQ(file.records.size(), 2u);
  EXPECT_EQ(file.records[1], good_record());
  EXPECT_FALSE(file.torn.has_value());
}

TEST_F(RecordFiles, ATornLastLineIsReportedAndTheRestRead) {
  write(line(1) + line(2) + "{\"a\":");
  const RecordFile file = read_records(path_);
  EXPECT_EQ(file.records.size(), 2u);
  ASSERT_TRUE(file.torn.has_value());
  EXPECT_THAT(*file.torn, HasSubstr("records.jsonl:3: "));
}

TEST_F(RecordFiles, AppendingAfterATornLineLosesNoRecord) {
  // Longer than the piece that is read at once.
  write(line(1) + "{\"a\":\"" + std::string(9000, 'x'));
  append_record(path_, row(2));
  EXPECT_EQ(text(), line(1) + line(2));
}

// A write that was cut off has no line end. What has one is somebody's text, not ours to drop.
TEST_F(RecordFiles, ABadLastLineWithItsLineEndIsDamage) {
  for (const std::string bad : {"<<<<<<< HEAD", "{\"a\":1e999}", "{\"a\":NaN}", "\xff"}) {
    write(line(1) + bad + "\n");
    EXPECT_THAT(usage_error(), HasSubstr("records.jsonl:2: not a record")) << bad;
    EXPECT_THROW(append_record(path_, row(2)), RuntimeError) << bad;
    EXPECT_EQ(text(), line(1) + bad + "\n");
  }
}

TEST_F(RecordFiles, NestingThatWouldTakeTheStackIsDamage) {
  const std::string deep(200000, '[');
  write("{\"case\":" + deep + std::string(200000, ']') + "}\n");
  EXPECT_THAT(usage_error(), HasSubstr("records.jsonl:1: not a record"));
  Json quoted = row(1);
  quoted["reason"] = "\"" + deep;  // brackets in a text nest nothing
  write(quoted.dump() + "\n");
  EXPECT_EQ(read_records(path_).records.size(), 1u);
}

TEST_F(RecordFiles, AWholeRecordWithoutLineEndIsKept) {
  write(line(1) + row(2).dump());
  EXPECT_EQ(read_records(path_).records.size(), 2u);
  append_record(path_, row(3));
  EXPECT_EQ(text(), line(1) + line(2) + line(3));
}

TEST_F(RecordFiles, AFileThatIsTornAltogetherStartsAgain) {
  write("{\"a");
  EXPECT_TRUE(read_records(path_).records.empty());
  append_record(path_, row(1));
  EXPECT_EQ(text(), line(1));
}

TEST_F(RecordFiles, EveryCutOfAFileKeepsTheWholeLines) {
  const std::string whole = line(1) + line(2) + line(3);
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    write(whole.substr(0, cut));
    const size_t before = read_records(path_).records.size();
    append_record(path_, row(4));
    const RecordFile after = read_records(path_);
    EXPECT_EQ(after.records.size(), before + 1) << "cut at " << cut;
    EXPECT_FALSE(after.torn.has_value()) << "cut at " << cut;
  }
}

TEST_F(RecordFiles, DamageElsewhereNamesTheLine) {
  write(line(1) + "\n[1]\n" + line(2));
  EXPECT_THAT(usage_error(), HasSubstr("records.jsonl:3: not a record of kvmark/1: "));
}

TEST_F(RecordFiles, RowsOfOthersNameTheLineAndTheKey) {
  write(line(1) + "{\"a\":1}\n");
  EXPECT_THAT(usage_error(),
              HasSubstr("records.jsonl:2: not a record of kvmark/1: schema: expected"));
  const auto error_with = [&](const char* key, const Json& value) {
    Json bad = row(2);
    bad[key] = value;
    write(line(1) + bad.dump() + "\n");
    return usage_error();
  };
  EXPECT_THAT(error_with("schema", "kvmark/2"), HasSubstr("found \"kvmark/2\""));
  EXPECT_THAT(error_with("status", "good"),
              HasSubstr("status: expected one of ok, skipped, failed, invalid, found \"good\""));
  EXPECT_THAT(error_with("status", nullptr), HasSubstr("found null"));
  EXPECT_THAT(error_with("case_id", 7), HasSubstr("case_id: expected a text, found 7"));
  EXPECT_THAT(error_with("case", Json::array()), HasSubstr("case: expected an object"));
  for (const char* status : {"ok", "skipped", "failed", "invalid"}) {
    EXPECT_EQ(error_with("status", status), "no error");
  }
}

TEST_F(RecordFiles, AFolderIsNoFileOfRecords) {
  std::filesystem::create_directories(path_);
  EXPECT_THAT(usage_error(), HasSubstr("records.jsonl: is a folder"));
}

TEST_F(RecordFiles, AMissingFileAndAnUnwritableFolderAreNamed) {
  EXPECT_THAT(usage_error(), HasSubstr("records.jsonl: cannot be read"));
  write("x");
  EXPECT_THROW(append_record(path_ + "/below/a/file.jsonl", good_record()), std::runtime_error);
}

TEST_F(RecordFiles, EmptyHoldsNothing) {
  write("");
  EXPECT_TRUE(read_records(path_).records.empty());
  EXPECT_FALSE(read_records(path_).torn.has_value());
}

TEST_F(RecordFiles, NumbersSurviveACommaLocale) {
  const CommaLocale locale;
  append_record(path_, {{"x", 1234567.25}, {"n", 1234567}, {"tiny", 1e-300}});
  EXPECT_EQ(text(), "{\"x\":1234567.25,\"n\":1234567,\"tiny\":1e-300}\n");
  Json with_number = row(1);
  with_number["x"] = 1234567.25;
  write(with_number.dump());
  EXPECT_EQ(read_records(path_).records.at(0)["x"], 1234567.25);
}

TEST_F(RecordFiles, WhatJsonCannotHoldIsReplaced) {
  Json bad = row(1);
  bad["nan"] = std::nan("");
  bad["reason"] = "bytes \xff here";
  append_record(path_, bad);
  const Json record = read_records(path_).records.at(0);
  EXPECT_TRUE(record["nan"].is_null());
  EXPECT_EQ(record["reason"], "bytes \xEF\xBF\xBD here");
}

}  // namespace
}  // namespace kvmark
