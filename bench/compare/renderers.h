// The forms of render(), a file each.
#pragma once

#include <string>

#include "bench/compare/comparison.h"

namespace kvmark {

// `all`: every metric of every case, not only what was found.
std::string render_table(const Comparison& comparison, bool strict, bool all);
std::string render_markdown(const Comparison& comparison, bool strict, bool all);

std::string render_json(const Comparison& comparison, bool strict);
std::string render_junit(const Comparison& comparison, bool strict);
std::string render_github(const Comparison& comparison, bool strict);

}  // namespace kvmark
