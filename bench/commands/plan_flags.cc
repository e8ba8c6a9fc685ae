#include <fmt/format.h>

#include <iterator>

#include "bench/commands/commands.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

// A flag that stands for a field of the plan, by the name of the flag.
struct AxisFlag {
  const char* flag;
  const char* value;
  const char* help;
};
constexpr AxisFlag kAxisFlags[] = {
    {"--engine", "LIST", "Engines, e.g. contiguous,fp16,paged:16/int8:g32"},
    {"--device", "LIST", "Devices, e.g. cpu"},
    {"--model", "NAME|FILE|DIR", "A preset, a GGUF file, or a folder with a config.json"},
    {"--seq-len", "RANGE", "prompt_len + gen_len: 128,256 or 128-8192*2 or 1024-4096+1024"},
    {"--prompt-len", "RANGE", "Tokens in the cache before decoding starts"},
    {"--gen-len", "RANGE", "Tokens to generate"},
    {"--heads", "LIST", "Query and KV heads, e.g. 8:2,32:8"},
    {"--batch", "RANGE", "Sequences that decode in lockstep"},
    {"--threads", "LIST", "Threads of a worker"},
    {"--rounds", "N", "Rounds at most"},
};

}  // namespace

void PlanFlags::add_to(CLI::App& command) {
  values_.resize(std::size(kAxisFlags));
  for (size_t i = 0; i < std::size(kAxisFlags); ++i) {
    const AxisFlag& axis = kAxisFlags[i];
    flags_.push_back(command.add_option(axis.flag, values_[i], axis.help)->type_name(axis.value));
  }
  command
      .add_option("--set", set_,
                  "Any field of the plan (see `kvmark list fields`); repeat --set for each")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

std::vector<Override> PlanFlags::overrides() const {
  std::vector<Override> overrides;
  for (size_t i = 0; i < std::size(kAxisFlags); ++i) {
    if (flags_[i]->count() == 0) continue;
    const char* flag = kAxisFlags[i].flag;
    std::string key = flag + 2;
    for (char& c : key) c = c == '-' ? '_' : c;
    overrides.push_back({flag, key, values_[i]});
  }
  for (const std::string& text : set_) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(
          fmt::format("--set {}: expected key=value, such as workload.max_seq_len=2048", text));
    }
    overrides.push_back({"--set", text.substr(0, equals), text.substr(equals + 1)});
  }
  return overrides;
}

}  // namespace kvmark
