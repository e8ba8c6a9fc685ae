#include "bench/page/page_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "bench/compare/surroundings.h"
#include "bench/page/comparable.h"
#include "bench/page/series.h"
#include "bench/report/format.h"
#include "bench/report/label.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

// "values", "intervals" and "n" of a row.
void add_figures(const Json& record, const std::vector<Figure>& figures, Json& row) {
  Json values = Json::object(), intervals = Json::object(), counts = Json::object();
  for (const Figure& f : figures) {
    if (!f.is_of(record)) continue;
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
           {"machine", machine_of(record)},
           {"generic", is_generic(record)},
           {"case", flat_case(record)}};
  add_figures(record, figures, row);
  add_series(record, row);
  return row;
}

// The layers that the rows of each setting have, by context. Settings are told apart by all but the
// engine, the lengths and the layers.
using LayersByContext = std::map<int64_t, std::set<int64_t>>;

std::string key_without_layers(const Json& row) {
  std::vector<std::string_view> keys(kLengthKeys.begin(), kLengthKeys.end());
  keys.push_back("layers");
  return rest_of_case(row, keys);
}

// "4–256": of layers that follow the context, one number for each; "" of others.
std::string layers_that_follow(const LayersByContext& layers) {
  std::set<int64_t> all;
  for (const auto& [context, of_context] : layers) {
    if (of_context.size() > 1) return "";
    all.insert(of_context.begin(), of_context.end());
  }
  return all.size() > 1 ? fmt::format("{}–{}", *all.begin(), *all.rbegin()) : "";
}

// The headings of the rows' groups. Where a plan lets the layers follow the context (at attention
// level, for a working set of one size), its rows are one group, "4–256 layers".
Texts page_headings(Records rows) {
  std::map<std::string, LayersByContext> layers;
  for (const Json& row : rows) {
    layers[key_without_layers(row)][context_tokens(row)].insert(length(row, "case.layers"));
  }
  std::vector<Json> cases;
  for (const Json& row : rows) {
    cases.push_back({{"case", value_at(row, "case")}});
    if (value_at(row, "case.level") != "attention") continue;
    const std::string follow = layers_that_follow(layers[key_without_layers(row)]);
    if (!follow.empty()) cases.back()["case"]["layers"] = follow;
  }
  return headings(cases);
}

std::string_view verdict_word(SpeedVerdict verdict) {
  switch (verdict) {
    case SpeedVerdict::faster:
      return "faster";
    case SpeedVerdict::slower:
      return "slower";
    case SpeedVerdict::same:
      return "same";
    case SpeedVerdict::open:
      return "open";
    case SpeedVerdict::rough:
      break;
  }
  return "rough";
}

// How the speed of a row compares with those that took turns with it: {"row", "ratio", "interval",
// "verdict"}, `row` being the place among all of them.
Json speeds_json(const Json& record, Records rows) {
  Json speeds = Json::array();
  if (!is_ok(record)) return speeds;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (&rows[i] == &record || !is_ok(rows[i]) || !took_turns(record, rows[i])) continue;
    const auto speed = step_speed(record, rows[i]);
    if (!speed || !speed->interval) continue;
    const auto [low, high] = *speed->interval;
    speeds.push_back({{"row", i},
                      {"ratio", thinned(speed->ratio)},
                      {"interval", {thinned(low), thinned(high)}},
                      {"verdict", verdict_word(verdict_of(*speed))}});
  }
  return speeds;
}

}  // namespace

Json rows_json(const PageContent& content, const std::vector<Figure>& figures,
               const Doubts& doubts) {
  std::vector<const Json*> pointers;
  for (const Json& row : content.rows) pointers.push_back(&row);
  const Texts names = row_labels(pointers), heading_of_row = page_headings(content.rows);
  Texts groups;
  Json rows = Json::array(), headings = Json::array();
  size_t run = 0, left = content.runs.empty() ? 0 : content.runs.front().rows;
  for (size_t i = 0; i < content.rows.size(); ++i) {
    while (left == 0 && run + 1 < content.runs.size()) left = content.runs[++run].rows;
    --left;
    auto group = std::find(groups.begin(), groups.end(), heading_of_row[i]);
    if (group == groups.end()) group = groups.insert(group, heading_of_row[i]);
    Json row = row_json(content.rows[i], figures, doubts);
    row["run"] = run;
    row["group"] = group - groups.begin();
    row["name"] = names[i];
    row["speeds"] = speeds_json(content.rows[i], content.rows);
    rows.push_back(std::move(row));
  }
  for (const std::string& heading : groups) headings.push_back({{"heading", heading}});
  return {{"groups", std::move(headings)}, {"rows", std::move(rows)}};
}

}  // namespace kvmark
