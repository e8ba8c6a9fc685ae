#include "bench/record/metric_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engines/core/check.h"
#include "engines/core/nearest.h"

namespace kvmark {
namespace {

// The parts that say how large the samples are.
constexpr std::array<std::string_view, 7> kParts = {"mean", "min", "p50", "p90",
                                                    "p95",  "p99", "max"};

// A number that two runs can be held against each other by.
bool is_comparable(const RecordField& field) {
  const bool figure =
      field.type == RecordFieldType::integer || field.type == RecordFieldType::number ||
      field.type == RecordFieldType::boolean || field.type == RecordFieldType::summary;
  return figure && field.role == FieldRole::metric && field.better != Better::none;
}

[[noreturn]] void fail_unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const RecordField& field : record_fields()) {
    if (is_comparable(field)) names.emplace_back(field.path);
  }
  throw UsageError(fmt::format("unknown metric `{}`{}; `kvmark list metrics` shows them", name,
                               did_you_mean(name, names)));
}

}  // namespace

std::string MetricName::path() const {
  return part.empty() ? std::string(field->path) : fmt::format("{}.{}", field->path, part);
}

MetricName parse_metric(std::string_view name) {
  const RecordField* field = find_record_field(name);
  std::string_view part = "p50";
  if (field == nullptr) {
    const size_t dot = std::min(name.rfind('.'), name.size());
    field = find_record_field(name.substr(0, dot));
    if (field == nullptr || field->type != RecordFieldType::summary) fail_unknown(name);
    part = name.substr(dot + 1);
    if (std::find(kParts.begin(), kParts.end(), part) == kParts.end()) {
      throw UsageError(fmt::format("`{}` has no part `{}`; expected one of: {}", field->path, part,
                                   fmt::join(kParts, ", ")));
    }
  }
  if (field->role == FieldRole::metric && field->better == Better::none) {
    throw UsageError(
        fmt::format("`{}` is better neither bigger nor smaller: nothing to decide by", name));
  }
  if (!is_comparable(*field)) fail_unknown(name);
  return {field, field->type == RecordFieldType::summary ? std::string(part) : ""};
}

}  // namespace kvmark
