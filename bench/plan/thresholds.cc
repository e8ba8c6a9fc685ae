#include "bench/plan/thresholds.h"

#include <fmt/format.h>

#include "bench/plan/bind.h"
#include "bench/plan/document.h"
#include "bench/plan/fields.h"
#include "bench/record/metric_name.h"
#include "engines/core/check.h"

namespace kvmark {

std::map<std::string, double> read_thresholds(const std::string& path) {
  Node plan;  // one that holds nothing else
  plan.kind = Node::Kind::map;
  plan.set("thresholds", read_document(path));
  check_keys(plan);
  std::map<std::string, double> thresholds;
  for (const auto& [key, bound] : bind_values(plan, path)) {
    const std::vector<std::string> names = split_key(key);
    if (names.front() == "thresholds") thresholds[names.back()] = bound.front().number();
  }
  return thresholds;
}

std::map<std::string, double> by_path(const std::map<std::string, double>& thresholds) {
  std::map<std::string, double> all;
  std::map<std::string, std::string> named;  // path → as `thresholds` calls it
  for (const auto& [metric, value] : thresholds) {
    const std::string path = parse_metric(metric).path();
    if (const auto [it, is_new] = named.emplace(path, metric); !is_new) {
      throw UsageError(fmt::format("{} and {} are one metric; expected one threshold for it",
                                   it->second, metric));
    }
    all[path] = value;
  }
  return all;
}

}  // namespace kvmark
