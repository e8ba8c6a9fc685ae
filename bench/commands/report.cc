#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/record/exit_code.h"
#include "bench/record/whole_file.h"
#include "bench/run/run_report.h"

namespace kvmark {

Command add_report(CLI::App& kvmark) {
  struct Options {
    ReportRequest request;
    bool no_plots = false;
  };
  const auto o = std::make_shared<Options>();
  o->request.page = "report.html";
  CLI::App* report = kvmark.add_subcommand(
      "report", "Write a page that shows runs, or what changed from one to another");
  report
      ->add_option("RUN", o->request.runs,
                   "A run's folder, or its records.jsonl; of two the second is compared with the "
                   "first")
      ->required();
  report->add_option("-o,--output", o->request.page, "The page")
      ->type_name("FILE")
      ->capture_default_str();
  report->add_flag("--no-plots", o->no_plots,
                   "Draw no pictures; they go into a folder that is named after the page");
  return {report, [o] {
            if (!o->no_plots && !is_stream(o->request.page)) {
              const std::filesystem::path page = o->request.page;
              o->request.plots = (page.parent_path() / page.stem()).string() + "-plots";
            }
            write_report(o->request, std::cerr);
            return kExitFine;
          }};
}

}  // namespace kvmark
