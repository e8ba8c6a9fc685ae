#include "bench/report/gha.h"

#include <fmt/format.h>

#include <optional>

#include "bench/record/metrics.h"
#include "bench/report/format.h"
#include "bench/report/label.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRate = "throughput.decode_tok_per_s";

std::optional<Json> entry(const Json& record, const std::string& label, const RecordField& field) {
  const Json& found = value_at(record, field.path);
  const bool summary = field.type == RecordFieldType::summary;
  const Json& value = summary ? value_at(found, "p50") : found;
  if (!value.is_number()) return std::nullopt;
  Json entry{{"name", fmt::format("{}: {}", label, field.title)},
             {"unit", field.unit.empty() ? "1" : field.unit},
             {"value", value}};
  if (const auto interval = interval_at(found, "p50_ci95")) {
    entry["range"] = fmt::format("± {}", human_number(((*interval)[1] - (*interval)[0]) / 2));
  }
  entry["extra"] = fmt::format("{}, commit {}", text_of(value_at(record, "env.cpu")),
                               text_of(value_at(record, "env.git")));
  return entry;
}

}  // namespace

GhaFiles gha(Records records) {
  std::vector<const Json*> rows;
  for (const Json& record : records) {
    if (has_figures(record)) rows.push_back(&record);
  }
  const std::vector<std::string> labels = row_labels(rows);
  GhaFiles files{Json::array(), Json::array()};
  for (size_t i = 0; i < rows.size(); ++i) {
    bool timed = false;  // one time a row
    for (const RecordField& field : record_fields()) {
      if (field.gate == Gate::shown && field.path != kRate) continue;
      if (field.gate == Gate::time && timed) continue;
      const auto found = entry(*rows[i], labels[i], field);
      if (!found) continue;
      timed = timed || field.gate == Gate::time;
      (field.better == Better::bigger ? files.bigger : files.smaller).push_back(*found);
    }
  }
  return files;
}

}  // namespace kvmark
