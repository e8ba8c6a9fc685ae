// A comparison as people and other tools read it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/compare/comparison.h"

namespace kvmark {

// table (a terminal), md (a step summary), json, junit (a test case for each row and metric),
// github (annotations, `::error …`).
std::span<const std::string_view> render_formats();

// Ends with a line end. `strict` as in exit_code_of(). `all`: table and md give every metric of
// every case, not only what is worse, undecided or better; the other formats hold everything
// anyhow. UTF-8 whatever the names hold. Throws UsageError for another format.
std::string render(const Comparison& comparison, std::string_view format, bool strict,
                   bool all = false);

}  // namespace kvmark
