#include "bench/compare/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/record/json_lines.h"
#include "bench/record/metric_name.h"
#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/label.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// What figures of one case depend on besides the commit.
constexpr std::string_view kMachine[] = {"cpu", "simd", "compiler"};

template <typename Machine>  // gives the value of a key of kMachine
std::string key_of(const Json& case_id, Machine machine) {
  Json key = {case_id};
  for (const std::string_view name : kMachine) key.push_back(machine(name));
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string problem_of(const Json& line) {
  if (value_at(line, "schema") != kHistorySchema) {
    return fmt::format("schema: expected \"{}\"", kHistorySchema);
  }
  if (!value_at(line, "case_id").is_string()) return "case_id: expected a text";
  if (!value_at(line, "run_id").is_string()) return "run_id: expected a text";
  if (!value_at(line, "figures").is_object()) return "figures: expected an object";
  return "";
}

}  // namespace

Json history_line(const Json& record) {
  if (!has_figures(record)) return nullptr;
  Json figures = Json::object();
  for (const RecordField& field : record_fields()) {
    if (field.gate == Gate::shown) continue;
    const MetricName name = parse_metric(field.path);
    const Json& value = value_at(record, name.path());
    if (value.is_number()) figures[name.path()] = value;
  }
  return {{"schema", kHistorySchema},
          {"run_id", value_at(record, "run_id")},
          {"case_id", value_at(record, "case_id")},
          {"label", row_label(record)},
          {"started", value_at(record, "env.started")},
          {"git", value_at(record, "env.git")},
          {"cpu", value_at(record, "env.cpu")},
          {"simd", value_at(record, "env.simd")},
          {"compiler", value_at(record, "env.compiler")},
          {"figures", std::move(figures)}};
}

void append_history(const std::string& path, std::span<const Json> rows) {
  for (const Json& row : rows) {
    if (const Json line = history_line(row); !line.is_null()) append_json_line(path, line);
  }
}

History History::read(const std::string& path) {
  JsonLines file = read_json_lines(path, "line of a history", problem_of);
  History history;
  history.torn = std::move(file.torn);
  for (Json& line : file.lines) {
    const std::string key =
        key_of(line["case_id"], [&](std::string_view name) { return value_at(line, name); });
    std::vector<Entry>& entries = history.entries_[key];
    const std::string run_id = line["run_id"].get<std::string>();
    const auto again = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.run_id == run_id; });
    if (again != entries.end()) entries.erase(again);
    entries.push_back({run_id, std::move(line["figures"])});
  }
  return history;
}

std::vector<double> History::figures(const Json& row, std::string_view metric) const {
  const auto found = entries_.find(key_of(value_at(row, "case_id"), [&](std::string_view name) {
    return value_at(row, fmt::format("env.{}", name));
  }));
  std::vector<double> figures;
  if (found == entries_.end()) return figures;
  for (const Entry& entry : found->second) {
    const auto figure = entry.figures.find(metric);
    const bool known = figure != entry.figures.end() && figure->is_number();
    if (known && value_at(row, "run_id") != entry.run_id) figures.push_back(figure->get<double>());
  }
  if (figures.size() > kHistoryRuns) figures.erase(figures.begin(), figures.end() - kHistoryRuns);
  return figures;
}

std::optional<double> run_scatter(std::span<const double> figures) {
  if (figures.size() < kFewestHistoryRuns) return std::nullopt;
  std::vector<double> steps;
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] <= 0) return std::nullopt;
    if (i > 0) steps.push_back(std::abs(std::log(figures[i] / figures[i - 1])));
  }
  const auto middle = steps.begin() + (steps.size() - 1) / 2;
  std::nth_element(steps.begin(), middle, steps.end());
  return kNormalMad * *middle;
}

}  // namespace kvmark
