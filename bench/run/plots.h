// Calls the plotting scripts, which are Python and read records only.
#pragma once

#include <string>

namespace kvmark {

// Draws the plots of a run into its folder. Returns "" or why there are none (no Python with
// matplotlib, no scripts beside this build, or what the script said).
std::string draw_plots(const std::string& folder);

}  // namespace kvmark
