#include "bench/run/generate.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "bench/commands/commands.h"
#include "bench/record/exit_code.h"

namespace kvmark {

Command add_generate(CLI::App& kvmark) {
  const auto o = std::make_shared<GenerateOptions>();
  o->threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App* generate = kvmark.add_subcommand("generate", "Let a model speak through an engine");
  generate->add_option("--model", o->model, "A GGUF file")->required();
  generate->add_option("--engine", o->engine, "An engine")->required();
  generate->add_option("--prompt", o->prompt, "The text to continue")->required();
  generate->add_option("--gen-len", o->gen_len, "Tokens at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  generate->add_option("--threads", o->threads, "Threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  generate->add_flag("--json", o->json, "Tokens and their margins as one JSON object");
  return {generate, [o] {
            kvmark::generate(*o, std::cout);
            return kExitFine;
          }};
}

}  // namespace kvmark
