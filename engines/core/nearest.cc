#include "engines/core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace kvmark {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of a[0, i) to every prefix of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t exchanged = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({exchanged, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view text, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (!text.empty() && name.starts_with(fmt::format("{}:", text))) return name;
  }
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(text, name);
    if (best == nullptr || distance < best_distance) {
      best = &name;
      best_distance = distance;
    }
  }
  if (best == nullptr) return "";
  const size_t allowed = std::max<size_t>(2, std::max(text.size(), best->size()) / 3);
  return best_distance <= allowed ? *best : "";
}

std::string did_you_mean(std::string_view text, std::span<const std::string> names) {
  const std::string name = nearest_name(text, names);
  return name.empty() ? "" : fmt::format(" (did you mean `{}`?)", name);
}

}  // namespace kvmark
