#include "bench/compare/surroundings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const Json*>;

struct Key {
  std::string_view name;
  std::string_view effect;  // what the difference alone may do, "": nothing that one has to know
};
constexpr Key kKeys[] = {
    {"cpu", "another machine: times cannot be compared"},
    {"cores", "another machine: times cannot be compared"},
    {"gpu", "times cannot be compared"},
    {"simd", "other kernels: times and the last bits of sums differ by that alone"},
    {"compiler", "times may differ by that alone"},
    {"flags", "times may differ by that alone"},
    {"blas", "times at level model may differ by that alone"},
    {"huge_pages", "times may differ by that alone"},
    {"governor", "times may differ by that alone"},
    {"vm", ""},
    {"container", ""},
    {"os", ""},
    {"git", ""},
};

// Without repetition, in the order in which they come up.
std::vector<std::string> values(const Rows& rows, std::string_view path) {
  std::vector<std::string> found;
  for (const Json* row : rows) {
    const Json& value = value_at(*row, path);
    const std::string text = value.is_null() ? std::string(kNothing) : text_of(value);
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  }
  return found;
}

std::vector<std::string> doubts(const Rows& rows) {
  std::vector<std::string> found;
  for (const Json* row : rows) {
    const Json& reasons = value_at(*row, "env.unstable");
    if (!reasons.is_array()) continue;
    for (const Json& reason : reasons) {
      const std::string text = text_of(reason);
      if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
    }
  }
  return found;
}

}  // namespace

bool same_machine(const RowPair& pair) {
  const auto same = [&](const char* path) {
    return value_at(*pair.base, path) == value_at(*pair.now, path);
  };
  return same("env.cpu") && same("env.cores") && same("env.gpu");
}

std::vector<std::string> differences(const std::vector<RowPair>& pairs) {
  Rows base, now;
  for (const RowPair& pair : pairs) {
    base.push_back(pair.base);
    now.push_back(pair.now);
  }
  std::vector<std::string> lines;
  for (const Key& key : kKeys) {
    const std::string path = fmt::format("env.{}", key.name);
    const std::vector<std::string> before = values(base, path), after = values(now, path);
    if (before == after) continue;
    lines.push_back(fmt::format("{}: {} → {}{}{}", key.name, fmt::join(before, ", "),
                                fmt::join(after, ", "), key.effect.empty() ? "" : "; ",
                                key.effect));
  }
  const auto add_doubts = [&](std::string_view side, const Rows& rows) {
    const std::vector<std::string> found = doubts(rows);
    if (!found.empty()) {
      lines.push_back(fmt::format("unstable, {}: {}", side, fmt::join(found, "; ")));
    }
  };
  add_doubts("base", base);
  add_doubts("new", now);
  return lines;
}

std::string commits(const Rows& rows) {
  return fmt::format("{}", fmt::join(values(rows, "env.git"), ", "));
}

}  // namespace kvmark
