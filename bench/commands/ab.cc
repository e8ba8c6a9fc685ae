#include "bench/gate/ab.h"

#include <iostream>
#include <memory>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_ab(CLI::App& kvmark) {
  struct Options {
    AbRequest request;
    ComparisonFlags shown;
    PlanFlags plan;
    std::string base, now;
  };
  const auto o = std::make_shared<Options>();
  CLI::App* ab = kvmark.add_subcommand("ab", "Gate a change: is the new build slower or worse?");
  ab->add_option("CONFIG", o->request.config, "The plan that both builds run")->required();
  ab->add_option("--base", o->base, "The build before the change")->required()->type_name("BIN");
  ab->add_option("--new", o->now, "The build with it")->required()->type_name("BIN");
  o->plan.add_to(*ab);
  ab->add_option("-o,--output", o->request.folder,
                 "Folder of both runs and all pairs [results/ab-NAME-TIME]")
      ->type_name("DIR");
  o->shown.add_to(*ab);
  return {ab, [o] {
            o->shown.check({o->request.config, o->base, o->now});
            o->request.overrides = o->plan.overrides();
            o->request.base = open_binary(o->base);
            o->request.now = open_binary(o->now);
            const auto comparison = kvmark::ab(o->request, std::cerr);
            return comparison ? o->shown.show(*comparison) : kExitInterrupted;
          }};
}

}  // namespace kvmark
