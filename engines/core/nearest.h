// "Did you mean": the valid name nearest to a wrong one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvmark {

// The name of `names` with the smallest edit distance to `text` (insertions, deletions, exchanges;
// Levenshtein, 1966), the first where several are. "" when `names` is empty or nothing is near:
// more than a third of the longer text would have to change (and more than two characters). A name
// that goes on with a `:` behind the text goes first: `int8` means `int8:g32`.
std::string nearest_name(std::string_view text, std::span<const std::string> names);

// " (did you mean `x`?)" for the nearest name, "" when there is none.
std::string did_you_mean(std::string_view text, std::span<const std::string> names);

}  // namespace kvmark
