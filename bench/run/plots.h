// Calls the plotting scripts, which are Python and read records only.
#pragma once

#include <optional>
#include <string>

namespace kvmark {

// The Python that has matplotlib; nothing where there is none.
std::optional<std::string> plotting_python();

// Draws the plots of a run into its folder. Returns "" or why there are none (no Python with
// matplotlib, no scripts beside this build, or what the script said).
std::string draw_plots(const std::string& folder);

}  // namespace kvmark
