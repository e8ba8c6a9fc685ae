#include "bench/commands/commands.h"

#include <iostream>

#include "bench/record/exit_code.h"

namespace kvmark {

std::vector<Command> add_commands(CLI::App& kvmark) {
  std::vector<Command> commands;
  for (const auto add : {add_run, add_report, add_compare, add_ab, add_selftest_gate, add_list,
                         add_export, add_generate, add_schema, add_doctor, add_worker}) {
    commands.push_back(add(kvmark));
  }
  return commands;
}

int print(const std::string& text) {
  std::cout << text;
  return kExitFine;
}

}  // namespace kvmark
