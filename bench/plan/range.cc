// Ranges as llama-bench users know them.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "bench/plan/plan.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr size_t kMaxValues = 10000;
constexpr const char* kForms = "`128,256`, `128-8192*2` or `1024-4096+1024`";

// A whole number ≥ 0 that fits an int.
int parse_number(std::string_view text, std::string_view range) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    throw UsageError(fmt::format("`{}` in the range `{}` is no whole number; ranges look like {}",
                                 text, range, kForms));
  }
  if (text.size() > 1 && text[0] == '0') {
    throw UsageError(fmt::format(
        "`{}` in the range `{}` has a leading zero; write it without (it is not read as octal)",
        text, range));
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(fmt::format("`{}` in the range `{}` is too large; at most {}", text, range,
                                 std::numeric_limits<int>::max()));
  }
  return value;
}

// first, first ∘ step, … while ≤ last.
void append_steps(int first, int last, char op, int step, std::string_view range,
                  std::vector<int>& values) {
  if (last < first) {
    throw UsageError(fmt::format(
        "the range `{}` descends from {} to {}; the smaller end comes first", range, first, last));
  }
  if (op == '+' && step == 0) {
    throw UsageError(fmt::format("the range `{}` never advances: its step is 0", range));
  }
  if (op == '*' && (step < 2 || first == 0)) {
    throw UsageError(fmt::format(
        "the range `{}` never advances: the start must be ≥ 1 and the factor ≥ 2", range));
  }
  for (int64_t value = first; value <= last; value = op == '+' ? value + step : value * step) {
    if (values.size() == kMaxValues) {
      throw UsageError(fmt::format("the range `{}` has more than {} values; take a larger step",
                                   range, kMaxValues));
    }
    values.push_back(static_cast<int>(value));
  }
}

void append_part(std::string_view part, std::string_view range, std::vector<int>& values) {
  const size_t dash = part.find('-');
  if (dash == std::string_view::npos) {
    const int value = parse_number(part, range);
    append_steps(value, value, '+', 1, range, values);
    return;
  }
  const int first = parse_number(part.substr(0, dash), range);
  const size_t op = part.find_first_of("*+", dash + 1);
  if (op == std::string_view::npos) {
    throw UsageError(fmt::format("the range `{}` does not say how to step; write `{}*2` or `{}+1`",
                                 range, part, part));
  }
  const int last = parse_number(part.substr(dash + 1, op - dash - 1), range);
  const int step = parse_number(part.substr(op + 1), range);
  append_steps(first, last, part[op], step, range, values);
}

}  // namespace

std::vector<int> parse_range(std::string_view text) {
  std::string packed;
  for (char c : text) {
    if (c != ' ') packed += c;
  }
  std::vector<int> values;
  std::string_view rest = packed;
  while (true) {
    const size_t comma = rest.find(',');
    append_part(rest.substr(0, comma), packed, values);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace kvmark
