#include <memory>

#include "bench/commands/commands.h"
#include "bench/record/record.h"

namespace kvmark {

Command add_schema(CLI::App& kvmark) {
  const auto what = std::make_shared<std::string>();
  CLI::App* schema = kvmark.add_subcommand("schema", "Print a JSON Schema");
  schema->add_option("WHAT", *what, "plan or record")
      ->required()
      ->check(CLI::IsMember({"plan", "record"}));
  return {schema, [what] {
            return print((*what == "plan" ? plan_schema() : record_schema()).dump(2) + "\n");
          }};
}

}  // namespace kvmark
