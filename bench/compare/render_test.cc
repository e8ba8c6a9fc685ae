#include "bench/compare/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "bench/report/format.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

MetricComparison metric(const std::string& path, const std::string& part, double base, double now,
                        Verdict verdict) {
  MetricComparison m;
  m.metric = part.empty() ? path : path + "." + part;
  m.field = find_record_field(path);
  m.base = base;
  m.now = now;
  m.change = now / base - 1;
  m.threshold = 0.1;
  m.verdict = verdict;
  return m;
}

CaseComparison ok_case(const std::string& label) {
  CaseComparison c;
  c.case_id = label + "-id";
  c.label = label;
  c.base_status = c.status = "ok";
  return c;
}

Comparison slower() {
  Comparison comparison;
  comparison.base = "results/a";
  comparison.now = "results/b";
  CaseComparison c = ok_case("contiguous/f16 at 640");
  c.metrics.push_back(metric("latency.tpot_ms", "p50", 1.25, 1.5, Verdict::worse));
  c.metrics.back().note = "3σ of 12 earlier runs";
  c.metrics.push_back(metric("memory.kv_live_bytes", "", 4096, 4096, Verdict::same));
  c.metrics.push_back(metric("latency.itl_ms", "p99", 2, 1, Verdict::shown));
  comparison.cases.push_back(std::move(c));
  return comparison;
}

Comparison broken() {
  Comparison comparison;
  CaseComparison c = ok_case("a \"quoted\" & <tagged>,\nsplit: 5 %");
  c.status = "failed";
  c.reason = "killed by\nSIGKILL \x01 \xff";
  comparison.cases.push_back(std::move(c));
  comparison.one_sided.push_back({"paged:16/f32", "new key `x|y`", true});
  comparison.notes.push_back("git: abc → def");
  return comparison;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Table, VerdictComesFirstThenWhatGotWorse) {
  const std::string table = render(slower(), "table", false);
  EXPECT_THAT(table, StartsWith("regression: 1 worse, 1 same; 1 case\n"));
  EXPECT_THAT(table, HasSubstr("TPOT p50"));
  EXPECT_THAT(table, HasSubstr("1.250 → 1.500 ms"));
  EXPECT_THAT(table, HasSubstr("+20.0 %"));
  EXPECT_THAT(table, HasSubstr("threshold 10 %"));
  EXPECT_THAT(table, HasSubstr("3σ of 12 earlier runs"));
}

TEST(Table, TheRestIsFoldedUnlessAllIsAsked) {
  EXPECT_THAT(render(slower(), "table", false),
              AllOf(Not(HasSubstr("KV live")), HasSubstr("1 metrics that are the same")));
  EXPECT_THAT(render(slower(), "table", false, /*all=*/true),
              AllOf(HasSubstr("KV live"), HasSubstr("ITL p99")));
}

TEST(Table, IsNoWiderThan100Columns) {
  Comparison comparison = slower();
  comparison.notes.push_back(std::string(60, 'x') + " " + std::string(60, 'y'));
  std::istringstream lines(render(comparison, "table", false, true));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 100u) << line;
}

TEST(Table, ABrokenCaseGivesItsReasonOnOneLine) {
  EXPECT_THAT(render(broken(), "table", false),
              AllOf(StartsWith("a case that was ok fails: 1 case broken"),
                    HasSubstr("ok → failed: killed by SIGKILL"),
                    HasSubstr("only in the base: paged:16/f32"), HasSubstr("git: abc → def")));
}

TEST(Table, DifferentFiguresNeverLookAlike) {
  Comparison comparison = slower();
  comparison.cases[0].metrics = {
      metric("memory.kv_live_bytes", "", 134217728, 134217729, Verdict::worse)};
  comparison.cases[0].metrics[0].threshold = 0;
  EXPECT_THAT(render(comparison, "table", false),
              AllOf(HasSubstr("134217728 → 134217729 bytes"), HasSubstr("+7.5e-07 %"),
                    HasSubstr("threshold any")));
}

TEST(Table, NothingPairedSaysSo) {
  EXPECT_THAT(render(Comparison{}, "table", false), StartsWith("nothing to compare"));
}

TEST(Markdown, EscapesWhatWouldBreakATable) {
  Comparison comparison = slower();
  comparison.cases[0].label = "a|b *c* <d>\ne";
  EXPECT_THAT(
      render(comparison, "md", false),
      AllOf(StartsWith("### ❌ kvmark: regression"),
            HasSubstr("| ❌ worse | a\\|b \\*c\\* &lt;d> e | TPOT p50 | 1.250 → 1.500 ms |")));
}

TEST(Json, HoldsEverything) {
  const auto json = nlohmann::json::parse(render(slower(), "json", false));
  EXPECT_EQ(json["exit_code"], kExitRegression);
  EXPECT_EQ(json["counts"]["worse"], 1);
  const auto& m = json["cases"][0]["metrics"][0];
  EXPECT_EQ(m["metric"], "latency.tpot_ms.p50");
  EXPECT_EQ(m["base"], 1.25);
  EXPECT_EQ(m["new"], 1.5);
  EXPECT_EQ(m["verdict"], "worse");
  EXPECT_TRUE(m["change_interval"].is_null());
}

TEST(Json, HoldsFiguresAsPeopleReadThem) {
  Comparison comparison = slower();
  std::vector<MetricComparison>& metrics = comparison.cases[0].metrics;
  metrics[0].change_interval = {0.11, 0.31};
  metrics[1].threshold = 0;
  metrics[2].now.reset();
  metrics[2].change.reset();
  metrics[2].threshold.reset();
  metrics.push_back(metric("accuracy.correct.passed", "", 1, 0, Verdict::worse));
  const auto json = nlohmann::json::parse(render(comparison, "json", false));
  std::string texts;
  for (const auto& m : json["cases"][0]["metrics"]) {
    for (const char* key : {"base_text", "new_text", "change_text", "threshold_text"}) {
      texts += m[key].get<std::string>() + "|";
    }
    texts += "\n";
  }
  EXPECT_EQ(texts,
            "1.250 ms|1.500 ms|+20.0 % [+11.0, +31.0]|10 %|\n"
            "4 KiB|4 KiB|+0.00 %|any|\n"
            "2.000 ms|—|||\n"
            "true|false||10 %|\n");
}

TEST(Json, TakesBytesThatAreNotText) {
  const auto json = nlohmann::json::parse(render(broken(), "json", false));
  EXPECT_EQ(json["exit_code"], kExitFailed);
  EXPECT_EQ(json["one_sided"][0]["side"], "base");
}

TEST(Junit, HasATestForEachMetricAndTheStatus) {
  const std::string xml = render(slower(), "junit", false);
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  EXPECT_EQ(count(xml, "<testcase "), 3u);
  EXPECT_THAT(xml, HasSubstr("<failure type=\"worse\" message=\"TPOT p50: 1.250 → 1.500 ms, +20.0 "
                             "%, threshold 10 %; 3σ of 12 earlier runs\">"));
}

TEST(Junit, EscapesNamesAndControlCharacters) {
  const std::string xml = render(broken(), "junit", false);
  EXPECT_THAT(xml, HasSubstr("a &quot;quoted&quot; &amp; &lt;tagged&gt;,&#10;split: 5 %"));
  EXPECT_EQ(xml.find('\x01'), std::string::npos);
  EXPECT_EQ(xml.find('\xff'), std::string::npos);
}

TEST(Junit, UndecidedFailsOnlyWhereItIsStrict) {
  Comparison comparison = slower();
  comparison.cases[0].metrics[0].verdict = Verdict::undecided;
  EXPECT_THAT(render(comparison, "junit", false), HasSubstr("failures=\"0\""));
  EXPECT_THAT(render(comparison, "junit", true), HasSubstr("<failure type=\"undecided\""));
}

TEST(Junit, NothingPairedIsAnError) {
  EXPECT_THAT(render(Comparison{}, "junit", false),
              HasSubstr("<error message=\"nothing to compare"));
}

TEST(Github, EscapesTextAndTitle) {
  EXPECT_THAT(render(broken(), "github", false),
              HasSubstr("::error title=a \"quoted\" & <tagged>%2C%0Asplit%3A 5 %25 broke::ok → "
                        "failed: killed by SIGKILL"));
}

TEST(Github, BrokenCasesComeBeforeSlowOnes) {
  Comparison comparison = slower();
  comparison.cases.push_back(broken().cases[0]);
  const std::string text = render(comparison, "github", false);
  EXPECT_LT(text.find("broke::"), text.find("TPOT p50"));
}

TEST(Github, WhatAStepWouldDropIsCounted) {
  Comparison comparison = slower();
  for (int i = 0; i < 14; ++i) comparison.cases.push_back(comparison.cases[0]);
  const std::string text = render(comparison, "github", false);
  EXPECT_EQ(count(text, "::error "), 10u);
  EXPECT_THAT(text, HasSubstr("6 more of this kind"));
}

TEST(Github, UndecidedWarnsAndWhatIsShownIsSilent) {
  Comparison comparison = slower();
  comparison.cases[0].metrics[0].verdict = Verdict::undecided;
  EXPECT_THAT(render(comparison, "github", false),
              AllOf(HasSubstr("::warning title=contiguous/f16 at 640%3A undecided::"),
                    Not(HasSubstr("ITL"))));
  EXPECT_THAT(render(comparison, "github", true), HasSubstr("::error title=contiguous"));
}

TEST(Formats, EachOneIsRenderedAndOthersAreRefused) {
  for (const std::string_view format : render_formats()) {
    const std::string text = render(slower(), format, false);
    EXPECT_EQ(text.back(), '\n') << format;
  }
  EXPECT_THROW(render(slower(), "html", false), UsageError);
}

TEST(ExitCode, OfEachVerdict) {
  EXPECT_EQ(exit_code_of(slower(), false), kExitRegression);
  EXPECT_EQ(exit_code_of(broken(), false), kExitFailed);
  EXPECT_EQ(exit_code_of(Comparison{}, false), kExitUndecided);
  Comparison undecided = slower();
  undecided.cases[0].metrics[0].verdict = Verdict::undecided;
  EXPECT_EQ(exit_code_of(undecided, false), kExitFine);
  EXPECT_EQ(exit_code_of(undecided, true), kExitUndecided);
  Comparison invalid = slower();
  invalid.cases[0].status = "invalid";
  EXPECT_EQ(exit_code_of(invalid, false), kExitInvalid);
  Comparison skipped = slower();
  skipped.cases[0].metrics[0].verdict = Verdict::better;
  skipped.cases.push_back(broken().cases[0]);
  skipped.cases[1].status = "skipped";
  EXPECT_EQ(exit_code_of(skipped, false), kExitFine);
  EXPECT_EQ(exit_code_of(skipped, true), kExitUndecided);
  Comparison only_shown = slower();
  for (MetricComparison& m : only_shown.cases[0].metrics) m.verdict = Verdict::shown;
  EXPECT_EQ(exit_code_of(only_shown, false), kExitUndecided);
  invalid.cases[0].base_status = "failed";
  EXPECT_EQ(exit_code_of(invalid, false), kExitRegression);
}

}  // namespace
}  // namespace kvmark
