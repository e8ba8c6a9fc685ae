// Every field of a plan, once: the binder, the JSON Schema, the reference in docs/configs.md and
// "did you mean" all come from this table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

enum class FieldType {
  text,     // with `choices`: one of them
  integer,  // whole, or one of the words in `choices`; where the field takes several, also a range
            // (parse_range)
  number,
  boolean,
  heads,   // "8:2" (query heads : KV heads) or "8"
  engine,  // a name that parse_engine reads
};

struct Field {
  std::string key;  // dotted; a `*` stands for any name
  FieldType type = FieldType::text;
  bool several = false;        // takes a list: each value is a case of its own
  std::string fallback;        // default, as it would be written; "": derived or none
  std::string fallback_words;  // what a derived default is, for the reference
  double min = 0, max = 0;     // integer and number, both included
  std::vector<std::string> choices;
  std::string flag;  // of the command line, "" where there is none
  std::string doc;
};

const std::vector<Field>& fields();

// The field of a dotted key, `loss_gates.f16.kld_mean_max` included; null where there is none.
const Field* find_field(std::string_view key);
// The sections of a dotted key and its name. The name of a threshold is a metric's path, with dots.
std::vector<std::string> split_key(std::string_view key);
// Is `key` the name of a map that holds fields (`workload`, `loss_gates.f16`)?
bool is_section(std::string_view key);
// The names that may stand under a section ("" is the top), in the table's order.
std::vector<std::string> names_under(std::string_view section);
// What the field takes, as in "expected …".
std::string expected_words(const Field& field);

}  // namespace kvmark
