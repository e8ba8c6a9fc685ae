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
  std::string_view path;
  std::string_view effect;  // what the difference alone may do, "": nothing that one has to know
};
constexpr Key kKeys[] = {
    {"env.cpu", "another machine: times cannot be compared"},
    {"env.cores", "another machine: times cannot be compared"},
    {"env.gpu", "times cannot be compared"},
    {"env.simd", "other kernels: times and the last bits of sums differ by that alone"},
    {"kernel", "other kernels: times and the last bits of sums differ by that alone"},
    {"accuracy.correct.tolerance", "how wrong a result may be before a row is invalid"},
    {"env.compiler", "times may differ by that alone"},
    {"env.flags", "times may differ by that alone"},
    {"env.blas", "times at level model may differ by that alone"},
    {"env.huge_pages", "times may differ by that alone"},
    {"env.governor", "times may differ by that alone"},
    {"env.vm", ""},
    {"env.container", ""},
    {"env.os", ""},
    {"env.git", ""},
};

std::string shown(const Json& row, std::string_view path) {
  const Json& value = value_at(row, path);
  return value.is_null() ? std::string(kNothing) : text_of(value);
}

void add_new(std::vector<std::string>& texts, std::string text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
}

// Without repetition, in the order in which they come up.
std::vector<std::string> values(const Rows& rows, std::string_view path) {
  std::vector<std::string> found;
  for (const Json* row : rows) add_new(found, shown(*row, path));
  return found;
}

// "before → after" of the pairs that differ, each once.
std::vector<std::string> changes(const std::vector<RowPair>& pairs, std::string_view path) {
  const bool of_row = !path.starts_with("env.");  // a row without figures lacks it
  std::vector<std::string> found;
  for (const RowPair& pair : pairs) {
    if (of_row && (value_at(*pair.base, path).is_null() || value_at(*pair.now, path).is_null())) {
      continue;
    }
    const std::string before = shown(*pair.base, path), after = shown(*pair.now, path);
    if (before != after) add_new(found, fmt::format("{} → {}", before, after));
  }
  return found;
}

std::vector<std::string> doubts(const Rows& rows) {
  std::vector<std::string> found;
  for (const Json* row : rows) {
    const Json& reasons = value_at(*row, "env.unstable");
    if (!reasons.is_array()) continue;
    for (const Json& reason : reasons) add_new(found, text_of(reason));
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

std::string machine_of(const Json& row) {
  const Json &cpu = value_at(row, "env.cpu"), &gpu = value_at(row, "env.gpu");
  return fmt::format("{} with {} cores{}{}", cpu.is_null() ? "an unnamed CPU" : text_of(cpu),
                     shown(row, "env.cores"), gpu.is_null() ? "" : " and ",
                     gpu.is_null() ? "" : text_of(gpu));
}

std::vector<std::string> differences(const std::vector<RowPair>& pairs) {
  Rows base, now;
  for (const RowPair& pair : pairs) {
    base.push_back(pair.base);
    now.push_back(pair.now);
  }
  std::vector<std::string> lines;
  for (const Key& key : kKeys) {
    const std::vector<std::string> changed = changes(pairs, key.path);
    if (changed.empty()) continue;
    lines.push_back(fmt::format("{}: {}{}{}", key.path.substr(key.path.rfind('.') + 1),
                                fmt::join(changed, ", "), key.effect.empty() ? "" : "; ",
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
