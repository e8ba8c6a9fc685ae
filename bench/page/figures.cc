#include "bench/page/figures.h"

#include <algorithm>
#include <string_view>

#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Pooled over steps: those of a round depend on each other, so that an interval over all of them
// would be far too narrow.
constexpr std::string_view kPooled[] = {"latency.itl_ms", "latency.attend_ms"};

std::vector<Figure> all_figures() {
  std::vector<Figure> figures;
  for (const RecordField& field : record_fields()) {
    if (field.role != FieldRole::metric) continue;
    const std::string path(field.path);
    if (field.type == RecordFieldType::summary) {
      const std::string title(field.title);
      const bool is_pooled = is_one_of(path, kPooled);
      figures.push_back({&field, path + ".p50", title + " p50", is_pooled ? "" : path + ".p50_ci95",
                         path + ".n"});
      figures.push_back({&field, path + ".p99", title + " p99", "", path + ".n"});
    } else if (field.type == RecordFieldType::number || field.type == RecordFieldType::integer) {
      figures.push_back({&field, path, std::string(field.title), path + "_ci95", ""});
    }
  }
  return figures;
}

constexpr std::string_view kChoices[] = {"latency.", "throughput.", "accuracy.loss."};
constexpr std::string_view kFurtherChoices[] = {"memory.kv_bits_per_element",
                                                "work.bandwidth_fraction", "work.flop_fraction"};

}  // namespace

bool Figure::is_of(const Json& row) const {
  const bool has_tokens = field->unit != "tokens/s" || value_at(row, "case.level") == "model";
  return has_figures(row) && has_tokens && figure(row, path).has_value();
}

bool Figure::is_choice() const {
  const auto begins = [&](std::string_view start) { return field->path.starts_with(start); };
  if (field->path == "accuracy.loss.nll") return false;  // of the text: hardly of the cache
  return field->better != Better::none &&
         (field->gate != Gate::shown ||
          std::any_of(std::begin(kChoices), std::end(kChoices), begins) ||
          is_one_of(field->path, kFurtherChoices));
}

std::vector<Figure> figures_of(Records rows) {
  std::vector<Figure> figures = all_figures();
  std::erase_if(figures, [&](const Figure& f) {
    return std::none_of(rows.begin(), rows.end(), [&](const Json& row) { return f.is_of(row); });
  });
  return figures;
}

}  // namespace kvmark
