// The page of one or more runs, and the plots of them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace kvmark {

struct ReportRequest {
  std::vector<std::string> runs;  // folders, or files of records; of two the first is the base
  std::string page;               // the HTML file
  std::string plots;              // the folder of the plots; "": none are drawn
};

// Writes the page, whole or not at all, and draws the plots; `err` is told what was written, and
// why there are no plots where there are none. Of two runs page and plot are a comparison, with
// times of different machines shown, not judged. Throws UsageError, before anything is written, for
// runs that cannot be read and a page that cannot be written or is one of their files, RuntimeError
// where writing fails.
void write_report(const ReportRequest& request, std::ostream& err);

// Removes the page and the plots that an earlier write_report() left, as they no longer agree with
// the records; says on `err` what had to stay.
void remove_report(const ReportRequest& request, std::ostream& err);

}  // namespace kvmark
