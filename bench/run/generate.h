// `kvmark generate`: lets a model speak through an engine.
#pragma once

#include <iosfwd>
#include <string>

namespace kvmark {

struct GenerateOptions {
  std::string model;   // a GGUF file
  std::string engine;  // any engine name
  std::string prompt;
  int gen_len = 64;
  int threads = 1;
  bool json = false;
};

// Greedy decoding from `prompt`. Writes the text to `out` as it comes; with `json` one object at
// the end: {"engine", "prompt_tokens", "tokens", "margins", "text"}, a margin being the gap between
// the best and the second-best logit of a step (a near-tie is one close to 0). Stops at the model's
// end-of-text token. Throws UsageError or RuntimeError.
void generate(const GenerateOptions& options, std::ostream& out);

}  // namespace kvmark
