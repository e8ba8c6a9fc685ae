#include "bench/report/label.h"

#include <fmt/format.h>

#include <map>

#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {

using Json = nlohmann::ordered_json;

std::string row_label(const Json& record) {
  const auto text = [&](const char* key) {
    return text_of(value_at(value_at(record, "case"), key));
  };
  std::string label = fmt::format("{} {} {} at {}", text("engine"), text("model"), text("level"),
                                  context_label(record));
  if (length(record, "case.batch") > 1) label += fmt::format(", batch {}", text("batch"));
  const int64_t threads = length(record, "case.threads");
  if (threads > 0) label += fmt::format(", {}", counted(threads, "thread"));
  if (text("pool_order") == "shuffled") label += ", shuffled";
  return label;
}

std::vector<std::string> row_labels(std::span<const Json* const> rows) {
  std::vector<std::string> labels;
  std::map<std::string, std::string> owner;  // the only case of a label; "" where there are more
  const auto id = [](const Json& row) { return text_of(value_at(row, "case_id")); };
  for (const Json* row : rows) {
    labels.push_back(row_label(*row));
    const auto [it, is_new] = owner.emplace(labels.back(), id(*row));
    if (!is_new && it->second != id(*row)) it->second.clear();
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (owner[labels[i]].empty()) labels[i] += fmt::format(" #{}", id(*rows[i]).substr(0, 8));
  }
  return labels;
}

}  // namespace kvmark
