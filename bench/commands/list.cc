#include "bench/run/list.h"

#include <fmt/format.h>

#include <memory>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_list(CLI::App& kvmark) {
  const auto topic = std::make_shared<std::string>();
  CLI::App* list = kvmark.add_subcommand("list", "What there is to choose from");
  list->add_option("TOPIC", *topic, fmt::format("{}", fmt::join(list_topics(), ", ")))->required();
  return {list, [topic] { return print(kvmark::list(*topic)); }};
}

}  // namespace kvmark
