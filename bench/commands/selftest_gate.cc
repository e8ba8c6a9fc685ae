#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/gate/selftest.h"

namespace kvmark {
namespace {

// The file itself: its name is part of what a test is continued by.
std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace

Command add_selftest_gate(CLI::App& kvmark) {
  struct Options {
    SelftestRequest request;
    PlanFlags plan;
    std::string base, now;
  };
  const auto o = std::make_shared<Options>();
  SelftestRequest& request = o->request;
  CLI::App* test =
      kvmark.add_subcommand("selftest-gate", "How far can `kvmark ab` be trusted on this machine?");
  test->add_option("CONFIG", request.config, "The plan that the gate is to run")->required();
  test->add_option("--base", o->base, "A build [this one]")->type_name("BIN");
  test->add_option("--new", o->now, "Another build of the same source [this one]")
      ->type_name("BIN");
  test->add_option("--aa-rounds", request.rounds,
                   "Rounds without a change to resample, a pair of visits of every row each")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  test->add_option("--runs", request.runs, "Whole runs without a change")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  test->add_option("--injected", request.injected, "Runs of a row that is slowed down")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  test->add_option("--slowdown", request.slowdown, "By which part of a step")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 10.0));
  o->plan.add_to(*test);
  test->add_option("-o,--output", request.folder,
                   "Folder of the test; one that is there goes on [results/selftest-NAME-TIME]")
      ->type_name("DIR");
  return {test, [o] {
            SelftestRequest& request = o->request;
            request.overrides = o->plan.overrides();
            request.base = open_binary(o->base.empty() ? this_program() : o->base);
            request.now = open_binary(o->now.empty() ? this_program() : o->now);
            return selftest_gate(request, std::cout, std::cerr);
          }};
}

}  // namespace kvmark
