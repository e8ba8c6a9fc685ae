#include "bench/page/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "bench/compare/render.h"
#include "bench/page/comparable.h"
#include "bench/page/figures.h"
#include "bench/page/page_rows.h"
#include "bench/page/summary.h"
#include "bench/record/environment.h"
#include "bench/record/metrics.h"
#include "bench/record/stats.h"
#include "bench/report/doubts.h"
#include "bench/report/format.h"
#include "bench/report/growth.h"
#include "bench/report/legend.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

void add_once(Texts& texts, std::string text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
}

// ---- Runs ----

// What a run without a plan is called: its folder, or its file of records without the ending.
std::string plain_name(const std::string& run) {
  std::filesystem::path path = std::filesystem::path(run).lexically_normal();
  if (!path.has_filename() || path.filename() == "records.jsonl") path = path.parent_path();
  const std::string name =
      path.extension() == ".jsonl" ? path.stem().string() : path.filename().string();
  return name.empty() ? run : name;
}

Texts titles_of(const PageRun& run) {
  Texts names;
  for (const Json& plan : value_at(run.plan, "plans")) {
    const Json& name = value_at(plan, "name");
    if (name.is_string()) add_once(names, name.get<std::string>());
  }
  if (names.empty()) names.push_back(plain_name(run.name));
  return names;
}

// When the first of its rows started.
Json start_of(Records rows) {
  Json first;
  for (const Json& row : rows) {
    const Json& started = value_at(row, "env.started");
    if (started.is_string() && (first.is_null() || started < first)) first = started;
  }
  return first;
}

Json runs_json(const PageContent& content) {
  Json runs = Json::array();
  size_t first = 0;
  for (const PageRun& run : content.runs) {
    Json role;
    if (content.comparison) role = runs.empty() ? "base" : "new";
    runs.push_back({{"name", run.name},
                    {"role", role},
                    {"started", start_of(Records(content.rows).subspan(first, run.rows))},
                    {"rows", run.rows},
                    {"plan", run.plan}});
    first += run.rows;
  }
  return runs;
}

// ---- Summary and surroundings ----

std::string_view kind_word(Sentence::Kind kind) {
  switch (kind) {
    case Sentence::Kind::undecided:
      return "undecided";
    case Sentence::Kind::warning:
      return "warning";
    default:
      return "fact";
  }
}

// Of a comparison its verdict, and what the new run says.
Json summary_json(const PageContent& content) {
  std::vector<Sentence> sentences;
  Records rows = content.rows;
  if (content.comparison) {
    sentences.push_back(verdict_sentence(*content.comparison));
    rows = rows.last(content.runs.back().rows);
  }
  for (Sentence& sentence : summary(rows)) {
    if (content.comparison) sentence.text = "Of the new run. " + sentence.text;
    sentences.push_back(std::move(sentence));
  }
  Json all = Json::array();
  for (const Sentence& s : sentences)
    all.push_back({{"kind", kind_word(s.kind)}, {"text", s.text}});
  return all;
}

// "huge pages" of "huge_pages", "score text" of "score.text".
std::string in_words(std::string_view key) {
  std::string words(key);
  for (char& c : words) {
    if (c == '_' || c == '.') c = ' ';
  }
  return words;
}

// "huge_pages" of "env.huge_pages".
std::string_view key_of(std::string_view path) { return path.substr(path.find('.') + 1); }

std::string environment_text(const Json& value, std::string_view unit) {
  if (value.is_null()) return "unknown";
  if (unit == "bytes" && value.is_number()) return human_bytes(value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return text_of(value);
}

// What is known of the machine and the build. Doubts and starts differ from row to row and stand
// elsewhere.
Json environment_json(Records rows) {
  Json all = Json::array();
  for (const RecordField& field : record_fields()) {
    if (field.role != FieldRole::environment || field.type == RecordFieldType::texts) continue;
    if (field.path == "env.started") continue;
    Texts values;
    bool is_known = false;
    for (const Json& row : rows) {
      const Json& value = value_at(row, field.path);
      is_known |= !value.is_null();
      add_once(values, environment_text(value, field.unit));
    }
    if (is_known) all.push_back({{"what", in_words(key_of(field.path))}, {"values", values}});
  }
  return all;
}

// Of a comparison with the side that they are of.
Json warnings_json(const PageContent& content) {
  Texts warnings;
  const auto add = [&](Records rows, std::string_view side) {
    Texts lines = Doubts(rows).plain_lines();
    if (std::string line = generic_line(rows); !line.empty()) lines.push_back(std::move(line));
    for (const std::string& line : lines) warnings.push_back(fmt::format("{}{}", side, line));
  };
  const Records rows = content.rows;
  if (!content.comparison) {
    add(rows, "");
  } else {
    add(rows.first(content.runs.front().rows), "base: ");
    add(rows.last(content.runs.back().rows), "new: ");
  }
  return warnings;
}

// ---- Metrics and settings ----

std::string_view better_word(Better better) {
  switch (better) {
    case Better::smaller:
      return "smaller";
    case Better::bigger:
      return "bigger";
    default:
      return "none";
  }
}

Json metrics_json(const std::vector<Figure>& figures) {
  Json metrics = Json::array();
  for (const Figure& f : figures) {
    metrics.push_back({{"path", f.path},
                       {"title", f.title},
                       {"unit", f.field->unit},
                       {"better", better_word(f.field->better)},
                       {"definition", f.field->definition},
                       {"noisy", f.field->certainty == Certainty::noisy},
                       {"is_choice", f.is_choice()}});
  }
  return metrics;
}

// The keys of the cases, those of the table first.
Json settings_json(Records rows) {
  Texts keys;
  for (const Json& row : rows) {
    const Json flat = flat_case(row);
    for (const auto& item : flat.items()) add_once(keys, item.key());
  }
  Json settings = Json::array();
  for (const RecordField& field : record_fields()) {
    if (!field.path.starts_with("case.") || std::erase(keys, key_of(field.path)) == 0) continue;
    settings.push_back({{"key", key_of(field.path)},
                        {"title", field.title},
                        {"unit", field.unit},
                        {"definition", field.definition}});
  }
  for (const std::string& key : keys) {
    settings.push_back({{"key", key}, {"title", in_words(key)}, {"unit", ""}, {"definition", ""}});
  }
  return settings;
}

}  // namespace

std::string page_title(const PageContent& content) {
  Texts names;
  for (const PageRun& run : content.runs) {
    for (std::string& name : titles_of(run)) add_once(names, std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Json page_data(const PageContent& content) {
  const Doubts doubts(content.rows);
  const std::vector<Figure> figures = figures_of(content.rows);
  const Json commit = build_identity()["git"];
  Json data{{"schema", "kvmark-page/1"},
            {"title", page_title(content)},
            {"kvmark", commit.is_string() ? "kvmark " + commit.get<std::string>() : "kvmark"},
            {"made", utc_now()},
            {"runs", runs_json(content)},
            {"summary", summary_json(content)},
            {"environment", environment_json(content.rows)},
            {"warnings", warnings_json(content)},
            {"metrics", metrics_json(figures)},
            {"settings", settings_json(content.rows)},
            {"limits",
             {{"growth_tokens", kGrowthTokens},
              {"interval_rounds", kIntervalSamples},
              {"same_as_f32", kSameAsF32},
              {"far", kFar},
              {"same_speed", kSameSpeed}}},
            {"step_times", kStepTimes},
            {"losses", kLosses},
            {"length_keys", kLengthKeys}};
  data.update(rows_json(content, figures, doubts));
  data["comparison"] = content.comparison
                           ? Json::parse(render(*content.comparison, "json", /*strict=*/false))
                           : Json();
  return data;
}

}  // namespace kvmark
