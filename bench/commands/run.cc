#include "bench/run/run.h"

#include <iostream>
#include <memory>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_run(CLI::App& kvmark) {
  struct Options {
    RunRequest request;
    PlanFlags plan;
    bool count = false, no_report = false;
  };
  const auto o = std::make_shared<Options>();
  CLI::App* run = kvmark.add_subcommand("run", "Run the cases of one or more plans");
  run->add_option("CONFIG", o->request.configs, "Plans, YAML or JSON; their rows go into one run")
      ->required();
  o->plan.add_to(*run);
  run->add_option("-o,--output", o->request.folder, "Folder of the run [results/NAME-TIME]")
      ->type_name("DIR");
  run->add_flag("--resume", o->request.resume,
                "Go on with the run in -o: cases without a good row");
  run->add_flag("--dry-run", o->request.dry_run,
                "Only show the cases, with predicted bytes and seconds");
  run->add_option("--history", o->request.history,
                  "Add the figures to this file, for `kvmark compare --history`")
      ->type_name("FILE");
  run->add_flag("--count", o->count,
                "Count instructions under valgrind in place of timing, with 1 thread and AVX2");
  run->add_flag("--no-report", o->no_report, "Write no page and draw no plots");
  return {
      run, [o] {
        if (o->count) {
          o->request.overrides = {{"--count", "count", "callgrind"}, {"--count", "threads", "1"}};
        }
        for (Override& set : o->plan.overrides()) o->request.overrides.push_back(std::move(set));
        o->request.report = !o->no_report;
        return kvmark::run(o->request, std::cout, std::cerr);
      }};
}

}  // namespace kvmark
