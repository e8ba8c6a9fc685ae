// From a document and flags to typed values, checked one by one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "bench/plan/document.h"
#include "bench/plan/plan.h"

namespace kvmark {

struct Value {
  std::variant<bool, int64_t, double, std::string> data;
  std::string where;  // as Node::where; of a default: the plan's path
  bool flag = false;  // given on the command line
  bool given = true;  // false: a default

  // A word in place of a whole number.
  bool is_word() const { return std::holds_alternative<std::string>(data); }
  bool boolean() const { return std::get<bool>(data); }
  int integer() const { return static_cast<int>(std::get<int64_t>(data)); }
  uint64_t seed() const { return static_cast<uint64_t>(std::get<int64_t>(data)); }
  double number() const { return std::get<double>(data); }
  const std::string& text() const { return std::get<std::string>(data); }
};

// By dotted key; keys without a value (derived defaults) are not in it.
using Values = std::map<std::string, std::vector<Value>>;

// Throws UsageError "file:line:column: …" for a key that is none, with the nearest valid one.
void check_keys(const Node& root);

// Puts the flags into the tree: --model first, then the others in order. A length that is given by
// flag makes room: of prompt_len, gen_len and seq_len, which bind each other, --seq-len alone
// replaces prompt_len. Throws UsageError that names the flag.
void apply_overrides(Node& root, const std::vector<Override>& overrides);

// Types, bounds, choices and ranges of every value, and the defaults of the table. Throws
// UsageError with the place, the key, what was expected and what stands there.
Values bind_values(const Node& root, const std::string& path);

}  // namespace kvmark
