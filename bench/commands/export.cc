#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/report/report.h"
#include "bench/run/run_folder.h"

namespace kvmark {

Command add_export(CLI::App& kvmark) {
  struct Options {
    std::string run, format = "csv";
  };
  const auto o = std::make_shared<Options>();
  CLI::App* exported = kvmark.add_subcommand("export", "Print the rows of a run for other tools");
  exported->add_option("RUN", o->run, "A run's folder, or its records.jsonl")->required();
  exported->add_option("--format", o->format, "csv or md")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "md"}));
  return {exported, [o] {
            const RunRows run = read_run(records_path_of(o->run));
            if (run.torn) std::cerr << "kvmark: " << *run.torn << ": left out\n";
            return print(o->format == "csv" ? csv(run.rows) : markdown(run.rows));
          }};
}

}  // namespace kvmark
