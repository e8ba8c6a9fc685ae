// Calls the plotting scripts, which are Python and read records only. Ctrl-C ends a script; then
// all of these throw Interrupted, and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kvmark {

// The Python that has matplotlib; nothing where there is none.
std::optional<std::string> plotting_python();

// Removes from a folder what draw_plots() and draw_comparison() left there, and the folder where
// nothing else is in it; any Python will do. Returns "", or that the pictures stay, and why.
std::string remove_plots(const std::string& folder);

// Draws the plots of runs (folders, or files of records) into a folder, in place of earlier ones;
// the script names on stderr what it wrote. Returns "", or that some could not be drawn, or why
// there are none (no Python with matplotlib, no scripts beside this build, a file in the folder's
// place, or the script failed).
std::string draw_plots(const std::vector<std::string>& runs, const std::string& folder);

// The same of what changed from one run to another. `comparison` is what `kvmark compare --format
// json` prints of them; it is left beside the picture.
std::string draw_comparison(const std::string& base, const std::string& now,
                            const std::string& comparison, const std::string& folder);

}  // namespace kvmark
