#include "bench/plan/thresholds.h"

#include "bench/plan/bind.h"
#include "bench/plan/document.h"
#include "bench/plan/fields.h"

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

}  // namespace kvmark
