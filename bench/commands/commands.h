// The subcommands of kvmark: a file each, which says what the command takes and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/plan/plan.h"

namespace kvmark {

struct Command {
  const CLI::App* app;       // whether it was asked for
  std::function<int()> act;  // what it does then; gives the exit code, throws what main prints
};

// Adds every command, in the order of `kvmark --help`.
std::vector<Command> add_commands(CLI::App& kvmark);

Command add_run(CLI::App& kvmark);
Command add_compare(CLI::App& kvmark);
Command add_report(CLI::App& kvmark);
Command add_list(CLI::App& kvmark);
Command add_export(CLI::App& kvmark);
Command add_generate(CLI::App& kvmark);
Command add_schema(CLI::App& kvmark);
Command add_ab(CLI::App& kvmark);
Command add_selftest_gate(CLI::App& kvmark);
Command add_doctor(CLI::App& kvmark);
Command add_worker(CLI::App& kvmark);  // hidden: serves a run

// The flags that stand for fields of a plan, and --set: shared by the commands that read one.
class PlanFlags {
 public:
  void add_to(CLI::App& command);
  // Flags first, then --set, so that both the order of the command line and the plan's keys hold.
  // Throws UsageError.
  std::vector<Override> overrides() const;

 private:
  std::vector<CLI::Option*> flags_;
  std::vector<std::string> values_, set_;
};

// How a comparison is shown, and what counts: shared by the commands that make one.
class ComparisonFlags {
 public:
  void add_to(CLI::App& command);
  // Before anything is read or measured: throws UsageError for what --out cannot be or write, for
  // one of `inputs` (files and folders of runs; "": none) and for a file that two outputs share.
  void check(const std::vector<std::string>& inputs) const;
  // To stdout, then to the files of --out; gives the exit code. A file that cannot be written after
  // all is told on stderr, and does not keep the others from being written.
  int show(const Comparison& comparison) const;

 private:
  struct Output {
    std::string format, path;
  };
  std::vector<Output> outputs() const;

  std::string format_ = "table";
  std::vector<std::string> outputs_;  // FORMAT=FILE
  bool strict_ = false, all_ = false;
};

// Prints to stdout; kExitFine.
int print(const std::string& text);

}  // namespace kvmark
