#include "bench/run/run_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <ostream>
#include <utility>

#include "bench/compare/compare.h"
#include "bench/compare/render.h"
#include "bench/page/page.h"
#include "bench/record/whole_file.h"
#include "bench/run/plots.h"
#include "bench/run/run_folder.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

// The second run against the first, as `kvmark compare` sees them by itself. The rows are given
// back.
Comparison compare_both(const std::vector<std::string>& names, std::vector<RunRows>& runs) {
  CompareOptions options;
  options.thresholds = thresholds_of(names.back());
  options.across_machines = true;  // a page is no gate
  ComparedRun base{names.front(), std::move(runs.front().rows), runs.front().planned};
  ComparedRun now{names.back(), std::move(runs.back().rows), runs.back().planned};
  Comparison comparison = compare(base, now, options);
  comparison.of_one_run = is_same_run(names.front(), names.back());
  runs.front().rows = std::move(base.rows);
  runs.back().rows = std::move(now.rows);
  return comparison;
}

PageContent content_of(const std::vector<std::string>& names, std::ostream& err) {
  std::vector<RunRows> runs;
  for (const std::string& name : names) {
    runs.push_back(read_run(name));
    if (runs.back().torn) err << "kvmark: " << *runs.back().torn << std::endl;
  }
  PageContent content;
  if (runs.size() == 2) content.comparison = compare_both(names, runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    content.runs.push_back({names[i], runs[i].rows.size(), std::move(runs[i].plan)});
    std::move(runs[i].rows.begin(), runs[i].rows.end(), std::back_inserter(content.rows));
  }
  return content;
}

// `kvmark report -o *.jsonl` takes the first of the files for the page.
void check_no_input(const ReportRequest& request) {
  namespace fs = std::filesystem;
  const fs::path page = resolved(request.page);
  for (const fs::path run : request.runs) {
    for (const fs::path& file :
         {run, run / "records.jsonl", run / "plan.json", run / "workers.log"}) {
      if (resolved(file) != page) continue;
      throw UsageError(
          fmt::format("-o {}: this file is of the run itself; expected another name for the page",
                      request.page));
    }
  }
}

}  // namespace

void write_report(const ReportRequest& request, std::ostream& err) {
  check_writable(request.page);
  check_no_input(request);
  const PageContent content = content_of(request.runs, err);
  write_whole(request.page, page(content));
  err << "page: " << request.page << std::endl;
  if (request.plots.empty()) return;
  const std::string problem =
      content.comparison
          ? draw_comparison(request.runs.front(), request.runs.back(),
                            render(*content.comparison, "json", /*strict=*/false), request.plots)
          : draw_plots(request.runs, request.plots);
  if (!problem.empty()) err << "kvmark: " << problem << std::endl;
}

void remove_report(const ReportRequest& request, std::ostream& err) {
  std::filesystem::remove(request.page);
  const std::string problem = remove_plots(request.plots);
  if (!problem.empty()) err << "kvmark: " << problem << std::endl;
}

}  // namespace kvmark
