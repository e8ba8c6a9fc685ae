#include "bench/page/page_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/compare/compare.h"
#include "bench/record/metrics.h"
#include "bench/report/report_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

PageContent content_of(std::vector<Json> rows, Json plan = nullptr) {
  PageContent content;
  content.runs = {{"results/quick", rows.size(), std::move(plan)}};
  content.rows = std::move(rows);
  return content;
}

Json data_of(std::vector<Json> rows) { return page_data(content_of(std::move(rows))); }

// The element of a list whose `key` is that; null where there is none.
Json find(const Json& list, const char* key, const Json& value) {
  for (const Json& item : list) {
    if (item[key] == value) return item;
  }
  return nullptr;
}

// Seven rounds, so that medians have intervals.
Json measured_row(const std::string& engine) {
  Json r = row(engine, "", 1000);
  r["latency"]["tpot_ms"] = to_json(summarize(std::vector<double>{1, 2, 3, 4, 5, 6, 7}));
  r["work"]["bandwidth_fraction"] = 0.9;
  r["work"]["bandwidth_fraction_ci95"] = {0.85, 0.95};
  r["memory"]["timeline"] = {
      {{"position", 1}, {"live_bytes", 10}, {"reserved_bytes", 20}},
      {{"position", 511}, {"live_bytes", 30}, {"reserved_bytes", 40}},
  };
  return r;
}

// ---- Runs ----

TEST(PageData, ATitleIsOfThePlansElseOfTheRun) {
  EXPECT_EQ(page_title(content_of(quickstart())), "quick");
  const Json plan = {{"plans", {{{"name", "quickstart"}}, {{"name", "codecs"}}}}};
  EXPECT_EQ(page_title(content_of(quickstart(), plan)), "quickstart, codecs");
  PageContent content = content_of(quickstart());
  for (const auto& [name, title] : std::vector<std::pair<std::string, std::string>>{
           {"results/v1.2/", "v1.2"}, {"a/b.jsonl", "b"}, {"a/run/records.jsonl", "run"}}) {
    content.runs[0].name = name;
    EXPECT_EQ(page_title(content), title);
  }
}

TEST(PageData, RunsAreTold) {
  PageContent content = content_of(quickstart(), {{"run_id", "x"}});
  content.rows[0]["env"]["started"] = "2026-01-02T00:00:00Z";
  content.rows[1]["env"]["started"] = "2026-01-01T00:00:00Z";
  content.rows.push_back(row("contiguous/f16", "fp16", 1000));
  content.runs.push_back({"other", 1, nullptr});
  const Json data = page_data(content);
  EXPECT_EQ(data["runs"][0], Json({{"name", "results/quick"},
                                   {"role", nullptr},
                                   {"started", "2026-01-01T00:00:00Z"},
                                   {"rows", 3},
                                   {"plan", {{"run_id", "x"}}}}));
  EXPECT_EQ(data["runs"][1]["started"], nullptr);
  std::vector<int> runs;
  for (const Json& r : data["rows"]) runs.push_back(r["run"]);
  EXPECT_THAT(runs, ElementsAre(0, 0, 0, 1));
}

TEST(PageData, AComparisonIsWholeAndGivesRoles) {
  PageContent content = content_of(quickstart());
  const ComparedRun run{"run", content.rows};
  content.comparison = compare(run, run, {});
  content.runs.push_back(content.runs[0]);
  content.rows.insert(content.rows.end(), run.rows.begin(), run.rows.end());
  const Json data = page_data(content);
  EXPECT_EQ(data["runs"][0]["role"], "base");
  EXPECT_EQ(data["runs"][1]["role"], "new");
  EXPECT_EQ(data["comparison"]["schema"], "kvmark-compare/1");
  EXPECT_EQ(data["comparison"]["cases"].size(), 3u);
  EXPECT_THAT(data["summary"][0]["text"].get<std::string>(), HasSubstr("no regression found"));
  EXPECT_THAT(data["summary"][1]["text"].get<std::string>(), StartsWith("Of the new run. "));
  EXPECT_EQ(data_of(quickstart())["comparison"], nullptr);
}

// ---- Metrics and settings ----

TEST(PageData, MetricsAreThoseOfTheTableThatARowHas) {
  const Json data = data_of({measured_row("contiguous/f16")});
  const RecordField* field = find_record_field("latency.tpot_ms");
  EXPECT_EQ(find(data["metrics"], "path", "latency.tpot_ms.p50"),
            Json({{"path", "latency.tpot_ms.p50"},
                  {"title", "TPOT p50"},
                  {"unit", "ms"},
                  {"better", "smaller"},
                  {"definition", field->definition},
                  {"noisy", true},
                  {"is_choice", true}}));
  EXPECT_EQ(find(data["metrics"], "path", "latency.tpot_ms.p99"), nullptr) << "seven have none";
  EXPECT_NE(find(data["metrics"], "path", "latency.itl_ms.p99"), nullptr) << "510 have one";
  EXPECT_EQ(find(data["metrics"], "path", "accuracy.loss.kld_mean"), nullptr);
  EXPECT_EQ(find(data["metrics"], "path", "memory.kv_live_bytes")["noisy"], false);
}

TEST(PageData, RowsOfEveryKindOfMetric) {
  const Json r = data_of({measured_row("contiguous/f16")})["rows"][0];
  EXPECT_EQ(r["values"]["latency.tpot_ms.p50"], 4);
  EXPECT_EQ(r["intervals"]["latency.tpot_ms.p50"], Json({1, 7}));
  EXPECT_EQ(r["n"]["latency.tpot_ms.p50"], 7);
  EXPECT_EQ(r["values"]["work.bandwidth_fraction"], 0.9);
  EXPECT_EQ(r["intervals"]["work.bandwidth_fraction"], Json({0.85, 0.95}));
  EXPECT_EQ(r["values"]["memory.kv_live_bytes"], 2093056);
  EXPECT_FALSE(r["values"].contains("accuracy.loss.kld_mean"));
  EXPECT_FALSE(r["intervals"].contains("memory.kv_live_bytes"));
  EXPECT_EQ(r["n"]["latency.itl_ms.p99"], 510);
}

TEST(PageData, StepsOfARoundHaveNoIntervalOfTheirOwn) {
  Json r = measured_row("contiguous/f16");
  r["latency"]["attend_ms"] = r["latency"]["tpot_ms"];
  const Json data = data_of({r})["rows"][0];
  ASSERT_TRUE(data["values"].contains("latency.attend_ms.p50"));
  EXPECT_FALSE(data["intervals"].contains("latency.attend_ms.p50"));
  EXPECT_FALSE(data["intervals"].contains("latency.itl_ms.p50"));
}

TEST(PageData, LimitsAreThoseOfTheSummary) {
  const Json data = data_of(quickstart());
  EXPECT_EQ(data["limits"], Json({{"growth_tokens", 64},
                                  {"interval_rounds", 6},
                                  {"same_as_f32", 1e-5},
                                  {"far", 2.0},
                                  {"same_speed", 0.01}}));
  EXPECT_EQ(data["step_times"][0], "latency.tpot_ms.p50");
  EXPECT_EQ(data["losses"][0], "accuracy.loss.kld_mean");
  EXPECT_EQ(data["length_keys"], Json({"prompt_len", "gen_len", "seq_len", "max_seq_len"}));
}

TEST(PageData, SettingsAreTheKeysOfTheCases) {
  const Json data = data_of(quickstart());
  EXPECT_EQ(find(data["settings"], "key", "kv_heads")["title"], "KV heads");
  EXPECT_EQ(find(data["settings"], "key", "repeat_kv")["title"], "repeat kv") << "a further key";
  EXPECT_EQ(find(data["settings"], "key", "count"), nullptr) << "no case has it";
  EXPECT_EQ(data["rows"][0]["case"]["kv_heads"], 2);
}

TEST(PageData, PartsOfObjectsAreSettingsToo) {
  std::vector<Json> rows = {row("contiguous/f16", "", 1000)};
  rows[0]["case"]["score"] = {{"text", "alice.txt"}, {"chunk", nullptr}};
  rows[0]["case"]["gate"] = {{"attend_rel_rms_max", 1e-4}};
  const Json data = data_of(rows);
  EXPECT_EQ(data["rows"][0]["case"]["score.text"], "alice.txt");
  EXPECT_EQ(find(data["settings"], "key", "score.text")["title"], "score text");
  for (const auto& item : data["rows"][0]["case"].items()) {
    EXPECT_FALSE(item.value().is_structured() || item.value().is_null()) << item.key();
    EXPECT_THAT(item.key(), Not(HasSubstr("gate"))) << "it goes with the engine";
  }
}

TEST(PageData, TheAttentionAloneGivesNoTokens) {
  std::vector<Json> rows = {row("contiguous/f16", "", 1000), row("contiguous/f32", "", 1000)};
  rows[1]["case"]["level"] = "attention";
  const Json data = data_of(rows);
  EXPECT_EQ(data["rows"][0]["values"]["throughput.decode_tok_per_s"], 1000);
  EXPECT_FALSE(data["rows"][1]["values"].contains("throughput.decode_tok_per_s"));
  EXPECT_TRUE(data["rows"][1]["values"].contains("latency.tpot_ms.p50"));
}

TEST(PageData, SomeMetricsAreNothingToChooseBy) {
  Json r = measured_row("contiguous/f16");
  r["probes"]["run_delay_ms"] = 3.0;
  r["profile"]["ffn_ms"] = 0.5;
  r["memory"]["weight_bytes"] = 1024;
  r["work"]["read_ceiling_gb_per_s"] = 40.0;
  const Json metrics = data_of({r})["metrics"];
  for (const char* path : {"probes.run_delay_ms", "profile.ffn_ms", "memory.weight_bytes",
                           "work.read_ceiling_gb_per_s", "accuracy.correct.rel_rms"}) {
    EXPECT_EQ(find(metrics, "path", path)["is_choice"], false) << path;
  }
  for (const char* path :
       {"latency.tpot_ms.p50", "throughput.decode_tok_per_s", "memory.kv_reserved_bytes",
        "accuracy.loss.attend_rel_rms", "work.bandwidth_fraction"}) {
    EXPECT_EQ(find(metrics, "path", path)["is_choice"], true) << path;
  }
}

// ---- Rows ----

TEST(PageData, GenericKernelsAreKnown) {
  std::vector<Json> rows = {row("contiguous/f16", "", 1000), row("contiguous/f32", "", 1000)};
  rows[0]["kernel"] = "generic";
  rows[1]["kernel"] = "AVX2";
  const Json data = data_of(rows);
  EXPECT_EQ(data["rows"][0]["generic"], true);
  EXPECT_EQ(data["rows"][1]["generic"], false);
}

TEST(PageData, RowsThatTookTurnsAreComparedRoundByRound) {
  std::vector<Json> rows = {row("contiguous/f16", "", 1000), row("contiguous/f32", "", 1000),
                            row("paged:16/f32", "", 1000)};
  for (Json& record : rows) {
    record["sampling"]["interleaved"] = true;
    record["samples"]["round"] = std::vector<double>(7, 1);
  }
  rows[1]["samples"]["round"] = {1.5, 1.4, 1.6, 1.5, 1.5, 1.5, 1.5};
  rows[2]["group_run"] = "another";
  Json speeds = data_of(rows)["rows"][0]["speeds"];
  ASSERT_EQ(speeds.size(), 1u) << "the third took no turns with it";
  EXPECT_EQ(speeds[0],
            Json({{"row", 1}, {"ratio", 1.5}, {"interval", {1.4, 1.6}}, {"verdict", "faster"}}));
  speeds = data_of(rows)["rows"][1]["speeds"];
  EXPECT_EQ(speeds[0]["verdict"], "slower");
  rows[1]["samples"]["round"] = {1.5, 0.9, 1, 1, 1, 1, 1};
  EXPECT_EQ(data_of(rows)["rows"][0]["speeds"][0]["verdict"], "open");
  rows[1]["samples"]["round"] = {1.005, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(data_of(rows)["rows"][0]["speeds"][0]["verdict"], "same");
  rows[1]["samples"]["round"] = {1, 2, 3};
  EXPECT_EQ(data_of(rows)["rows"][0]["speeds"], Json::array()) << "three rounds decide nothing";
}

TEST(PageData, LayersThatFollowTheContextAreOneGroup) {
  std::vector<Json> rows;
  for (const int64_t context : {1024, 4096}) {
    rows.push_back(row("contiguous/f16", "", 1000));
    rows.back()["case"].update(
        {{"level", "attention"}, {"prompt_len", context}, {"layers", 65536 / context}});
  }
  Json data = data_of(rows);
  ASSERT_EQ(data["groups"].size(), 1u);
  EXPECT_THAT(data["groups"][0]["heading"].get<std::string>(), HasSubstr("16–64 layers"));
  EXPECT_EQ(data["rows"][1]["case"]["layers"], 16);
  rows.push_back(rows[0]);
  rows.back()["case"]["layers"] = 8;  // two shapes at one context
  EXPECT_EQ(data_of(rows)["groups"].size(), 3u);
}

TEST(PageData, ARowIsNamed) {
  std::vector<Json> rows = {row("recompute", "recompute", 10), row("paged:16/f16", "", 20)};
  rows[1]["case"]["prompt_len"] = 128;
  const Json data = data_of(rows);
  const Json& r = data["rows"][1];
  EXPECT_EQ(r["id"], "paged:16/f16");
  EXPECT_EQ(r["label"], "paged:16/f16");
  EXPECT_EQ(r["layout"], "paged:16");
  EXPECT_EQ(r["format"], "f16");
  EXPECT_EQ(r["context"], 128);
  EXPECT_EQ(r["rounds"], 7);
  EXPECT_EQ(r["machine"], "Some CPU with — cores");
  EXPECT_EQ(r["name"], "paged:16/f16 seed-gqa model at 128+511, 2 threads");
  EXPECT_EQ(data["rows"][0]["context"], 511) << "no prompt";
  EXPECT_EQ(data["rows"][0]["format"], "f32");
}

TEST(PageData, GroupsDifferInMoreThanEngineAndLengths) {
  std::vector<Json> rows = quickstart();
  rows[1]["case"]["prompt_len"] = 128;
  rows.push_back(row("contiguous/f16", "fp16", 1000));
  rows.back()["case"]["batch"] = 4;
  const Json data = data_of(rows);
  std::vector<int> groups;
  for (const Json& r : data["rows"]) groups.push_back(r["group"]);
  EXPECT_THAT(groups, ElementsAre(0, 0, 0, 1));
  ASSERT_EQ(data["groups"].size(), 2u);
  EXPECT_THAT(data["groups"][1]["heading"].get<std::string>(), HasSubstr("batch 4"));
}

TEST(PageData, ARowWhoseFiguresDoNotCountHasNone) {
  Json wrong = row("paged:16/f16", "", 1000);
  wrong["status"] = "invalid";
  wrong["reason"] = "wrong results";
  wrong["accuracy"]["correct"]["passed"] = false;
  const Json data = data_of({wrong, bad("contiguous/f16", "failed", "killed by SIGKILL")});
  for (const Json& r : data["rows"]) {
    EXPECT_EQ(r["counts"], false);
    for (const char* key : {"values", "intervals", "n"}) EXPECT_EQ(r[key], Json::object()) << key;
    for (const char* key : {"cumulative", "itl_quantiles_ms", "timeline"}) {
      EXPECT_EQ(r[key], nullptr) << key;
    }
  }
  EXPECT_EQ(data["rows"][1]["status"], "failed");
  EXPECT_EQ(data["rows"][1]["reason"], "killed by SIGKILL");
  EXPECT_EQ(data["metrics"], Json::array());
}

TEST(PageData, ARowThatOnlyMissesItsGateCounts) {
  Json missed = row("contiguous/f16", "", 1000);
  missed["status"] = "invalid";
  missed["reason"] = "loses too much";
  const Json r = data_of({missed})["rows"][0];
  EXPECT_EQ(r["counts"], true);
  EXPECT_EQ(r["reason"], "loses too much");
  EXPECT_TRUE(r["values"].contains("latency.tpot_ms.p50"));
}

TEST(PageData, SeriesAreThinnedOut) {
  const Json r = data_of({measured_row("contiguous/f16")})["rows"][0];
  const Json& tokens = r["cumulative"]["tokens"];
  EXPECT_LE(tokens.size(), 64u);
  EXPECT_GT(tokens.size(), 40u);
  EXPECT_EQ(tokens.front(), 1);
  EXPECT_EQ(tokens.back(), 511);
  for (size_t i = 1; i < tokens.size(); ++i) {
    const double before = tokens[i - 1], now = tokens[i];
    EXPECT_LT(before, now);
    if (before < 25) continue;  // a step is less than a token
    EXPECT_GT(now / before, 1.05) << "steps are equal on a logarithmic axis, " << before;
    EXPECT_LT(now / before, 1.2) << before;
  }
  EXPECT_EQ(r["cumulative"]["seconds"].size(), tokens.size());
  EXPECT_DOUBLE_EQ(r["cumulative"]["seconds"].front(), 12.5e-3);
  EXPECT_NEAR(r["cumulative"]["seconds"].back().get<double>(), 12.5e-3 + 510e-3, 1e-5);
  EXPECT_EQ(r["itl_quantiles_ms"].size(), 101u);
  EXPECT_EQ(r["timeline"],
            Json({{"tokens", {1, 511}}, {"live_bytes", {10, 30}}, {"reserved_bytes", {20, 40}}}));
}

TEST(PageData, LongTimelinesKeepTheirEnds) {
  Json record = measured_row("contiguous/f16");
  for (int position = 512; position < 1000; ++position) {
    record["memory"]["timeline"].push_back(
        {{"position", position}, {"live_bytes", position}, {"reserved_bytes", position}});
  }
  const Json timeline = data_of({record})["rows"][0]["timeline"];
  EXPECT_EQ(timeline["tokens"].size(), 128u);
  EXPECT_EQ(timeline["tokens"].front(), 1);
  EXPECT_EQ(timeline["tokens"].back(), 999);
}

TEST(PageData, QuantilesAreThoseOfTheGaps) {
  Json record = measured_row("contiguous/f16");
  record["samples"]["itl_ms"] = Json::array();
  for (int gap = 200; gap >= 0; --gap) record["samples"]["itl_ms"].push_back(gap);
  const Json quantiles = data_of({record})["rows"][0]["itl_quantiles_ms"];
  EXPECT_EQ(quantiles[0], 0);
  EXPECT_EQ(quantiles[50], 100);
  EXPECT_EQ(quantiles[100], 200);
}

// ---- Surroundings ----

TEST(PageData, DoubtsOfAllRowsAreWarningsAndThoseOfOneItsOwn) {
  std::vector<Json> rows = quickstart();
  for (Json& record : rows) record["env"]["unstable"].push_back("load 2.8 on 2 cores");
  rows[1]["env"]["unstable"].push_back("steal");
  const Json data = data_of(rows);
  EXPECT_THAT(data["warnings"].get<std::vector<std::string>>(),
              ElementsAre("load 2.8 on 2 cores: all rows", "steal: 1 of 3 rows"));
  EXPECT_EQ(data["rows"][1]["doubts"], Json({"steal"}));
  EXPECT_EQ(data["rows"][2]["doubts"], Json::array());
}

TEST(PageData, WarningsOfAComparisonSayTheirSide) {
  PageContent content = content_of({row("contiguous/f16", "", 1000)});
  content.rows[0]["env"]["unstable"].push_back("steal");
  content.comparison = Comparison{};
  content.runs.push_back(content.runs[0]);
  content.rows.push_back(row("contiguous/f16", "", 1000));
  content.rows[1]["kernel"] = "generic";
  EXPECT_THAT(page_data(content)["warnings"].get<std::vector<std::string>>(),
              ElementsAre("base: steal: all rows", StartsWith("new: generic kernels")));
}

TEST(PageData, TheEnvironmentTellsWhereRowsDiffer) {
  std::vector<Json> rows = quickstart();
  rows[0]["env"]["vm"] = rows[1]["env"]["vm"] = true;
  const Json data = data_of(rows);
  EXPECT_EQ(find(data["environment"], "what", "cpu")["values"], Json({"Some CPU"}));
  EXPECT_EQ(find(data["environment"], "what", "vm")["values"], Json({"yes", "unknown"}));
  EXPECT_EQ(find(data["environment"], "what", "gpu"), nullptr) << "unknown everywhere";
  EXPECT_EQ(find(data["environment"], "what", "unstable"), nullptr);
}

}  // namespace
}  // namespace kvmark
