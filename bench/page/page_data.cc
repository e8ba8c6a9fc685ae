#include "bench/page/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "bench/compare/render.h"
#include "bench/page/series.h"
#include "bench/page/summary.h"
#include "bench/record/environment.h"
#include "bench/record/metrics.h"
#include "bench/report/doubts.h"
#include "bench/report/format.h"
#include "bench/report/growth.h"
#include "bench/report/label.h"
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
  for (Sentence& sentence : summary(rows)) sentences.push_back(std::move(sentence));
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

Json warnings_json(Records rows, const Doubts& doubts) {
  Texts warnings = doubts.plain_lines();
  if (std::string line = generic_line(rows); !line.empty()) warnings.push_back(std::move(line));
  return warnings;
}

// ---- Metrics and settings ----

// A figure of the page: a number of the record, with where its interval and count stand.
struct Figure {
  const RecordField* field = nullptr;
  std::string path, title;
  std::string interval, n;  // paths; "": it has none
};

std::vector<Figure> all_figures() {
  std::vector<Figure> figures;
  for (const RecordField& field : record_fields()) {
    if (field.role != FieldRole::metric) continue;
    const std::string path(field.path);
    if (field.type == RecordFieldType::summary) {
      const std::string title(field.title);
      figures.push_back({&field, path + ".p50", title + " p50", path + ".p50_ci95", path + ".n"});
      figures.push_back({&field, path + ".p99", title + " p99", "", path + ".n"});
    } else if (field.type == RecordFieldType::number || field.type == RecordFieldType::integer) {
      figures.push_back({&field, path, std::string(field.title), path + "_ci95", ""});
    }
  }
  return figures;
}

// Has the row that figure to show? The attention alone gives no tokens, so no rates of them.
bool shows(const Json& row, const Figure& f) {
  const bool has_tokens = f.field->unit != "tokens/s" || value_at(row, "case.level") == "model";
  return has_figures(row) && has_tokens && figure(row, f.path).has_value();
}

// Those that at least one row has.
std::vector<Figure> figures_of(Records rows) {
  std::vector<Figure> figures = all_figures();
  std::erase_if(figures, [&](const Figure& f) {
    return std::none_of(rows.begin(), rows.end(), [&](const Json& row) { return shows(row, f); });
  });
  return figures;
}

// What a page may rank by: probes tell how much to believe of a row, not how good it is.
std::string_view better_word(const RecordField& field) {
  if (field.path.starts_with("probes.")) return "none";
  switch (field.better) {
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
                       {"better", better_word(*f.field)},
                       {"definition", f.field->definition},
                       {"noisy", f.field->certainty == Certainty::noisy}});
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

// ---- Rows ----

// "values", "intervals" and "n" of a row.
void add_figures(const Json& record, const std::vector<Figure>& figures, Json& row) {
  Json values = Json::object(), intervals = Json::object(), counts = Json::object();
  for (const Figure& f : figures) {
    if (!shows(record, f)) continue;
    values[f.path] = value_at(record, f.path);
    if (const auto ends = interval_at(record, f.interval)) intervals[f.path] = *ends;
    if (const Json& n = value_at(record, f.n); n.is_number()) counts[f.path] = n;
  }
  row["values"] = std::move(values);
  row["intervals"] = std::move(intervals);
  row["n"] = std::move(counts);
}

void add_series(const Json& record, Json& row) {
  const bool counts = has_figures(record);
  row["cumulative"] = counts ? cumulative_series(record) : Json();
  row["itl_quantiles_ms"] = counts ? gap_quantiles(record) : Json();
  row["timeline"] = counts ? memory_series(record) : Json();
}

Json row_json(const Json& record, const std::vector<Figure>& figures, const Doubts& doubts) {
  const Json& reason = value_at(record, "reason");
  const Json& rounds = value_at(record, "sampling.rounds");
  Json row{{"id", text_of(value_at(record, "case_id"))},
           {"label", engine_label(record)},
           {"engine", engine_name(record)},
           {"layout", engine_layout(record)},
           {"format", engine_format(record)},
           {"context", context_tokens(record)},
           {"status", text_of(value_at(record, "status"))},
           {"reason", reason.is_null() ? Json() : Json(text_of(reason))},
           {"counts", has_figures(record)},
           {"doubts", doubts.own_of(record)},
           {"rounds", rounds.is_number() ? rounds : Json()},
           {"turn", value_at(record, "sampling.interleaved") == true ? value_at(record, "group_run")
                                                                     : Json()},
           {"generic", is_generic(record)},
           {"case", flat_case(record)}};
  add_figures(record, figures, row);
  add_series(record, row);
  return row;
}

// The headings of the rows' groups. Where a plan lets the layers follow the context (at attention
// level, for a working set of one size), its rows are one group, "4–256 layers".
Texts page_headings(Records rows) {
  constexpr std::array<std::string_view, 5> kLengths = {"prompt_len", "gen_len", "seq_len",
                                                        "max_seq_len", "layers"};
  std::map<std::string, std::map<int64_t, std::set<int64_t>>> layers;  // of groups, by context
  const auto key_of_group = [&](const Json& row) {
    return rest_of_case(row, {kLengths.begin(), kLengths.end()});
  };
  for (const Json& row : rows) {
    layers[key_of_group(row)][context_tokens(row)].insert(length(row, "case.layers"));
  }
  std::vector<Json> cases;
  for (const Json& row : rows) {
    Json own{{"case", value_at(row, "case")}};
    std::set<int64_t> all;
    bool follow = value_at(row, "case.level") == "attention";
    for (const auto& [context, of_context] : layers[key_of_group(row)]) {
      follow &= of_context.size() == 1;
      all.insert(of_context.begin(), of_context.end());
    }
    if (follow && all.size() > 1) {
      own["case"]["layers"] = fmt::format("{}–{}", *all.begin(), *all.rbegin());
    }
    cases.push_back(std::move(own));
  }
  return headings(cases);
}

// The rows, and the headings of their groups.
void add_rows(const PageContent& content, const std::vector<Figure>& figures, const Doubts& doubts,
              Json& data) {
  std::vector<const Json*> pointers;
  for (const Json& row : content.rows) pointers.push_back(&row);
  const Texts names = row_labels(pointers), heading_of_row = page_headings(content.rows);
  Texts groups;
  Json rows = Json::array();
  size_t run = 0, left = content.runs.empty() ? 0 : content.runs.front().rows;
  for (size_t i = 0; i < content.rows.size(); ++i) {
    while (left == 0 && run + 1 < content.runs.size()) left = content.runs[++run].rows;
    --left;
    add_once(groups, heading_of_row[i]);
    Json row = row_json(content.rows[i], figures, doubts);
    row["run"] = run;
    row["group"] = std::find(groups.begin(), groups.end(), heading_of_row[i]) - groups.begin();
    row["name"] = names[i];
    rows.push_back(std::move(row));
  }
  data["groups"] = Json::array();
  for (const std::string& heading : groups) data["groups"].push_back({{"heading", heading}});
  data["rows"] = std::move(rows);
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
            {"warnings", warnings_json(content.rows, doubts)},
            {"metrics", metrics_json(figures)},
            {"settings", settings_json(content.rows)},
            {"growth_tokens", kGrowthTokens}};
  add_rows(content, figures, doubts, data);
  data["comparison"] = content.comparison
                           ? Json::parse(render(*content.comparison, "json", /*strict=*/false))
                           : Json();
  return data;
}

}  // namespace kvmark
