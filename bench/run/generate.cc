#include "bench/run/generate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engines/catalog/catalog.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_backend.h"
#include "engines/cpu/cpu_engine.h"
#include "engines/model/decoder.h"
#include "engines/model/gguf.h"
#include "engines/model/tokenizer.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

struct Choice {
  int32_t token;
  float margin;  // to the second-best logit
};

// What a file says before its weights are loaded.
struct Model {
  explicit Model(const std::string& path) try
      : file(path), config(config_from_gguf(file)), tokenizer(file) {
  } catch (const RuntimeError& e) {
    throw UsageError(e.what());  // the file is the user's to mend; nothing ran
  }

  const GgufFile file;
  const ModelConfig config;
  const Tokenizer tokenizer;
};

Choice choose(const float* logits, int vocab) {
  int best = 0;
  for (int i = 1; i < vocab; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  float second = -INFINITY;
  for (int i = 0; i < vocab; ++i) {
    if (i != best) second = std::max(second, logits[i]);
  }
  return {best, logits[best] - second};
}

}  // namespace

void generate(const GenerateOptions& options, std::ostream& out) {
  const EngineSpec engine_spec = parse_engine(options.engine);
  if (!std::filesystem::exists(options.model)) {
    throw UsageError(
        fmt::format("--model: there is no file {}: name a GGUF file, or fetch one by `make model`",
                    options.model));
  }
  const Model model(options.model);
  const ModelConfig& config = model.config;
  const Tokenizer& tokenizer = model.tokenizer;
  std::vector<int32_t> tokens = tokenizer.encode(options.prompt, true);
  if (tokens.empty()) throw UsageError("--prompt: is empty: give the text to go on from");
  const int prompt_len = static_cast<int>(tokens.size());
  const int max_len = prompt_len + options.gen_len;
  if (max_len > config.context) {
    throw UsageError(fmt::format(
        "--gen-len: {} prompt tokens and {} new ones are more than the model's context of {}: "
        "shorten one of them",
        prompt_len, options.gen_len, config.context));
  }

  ThreadPool pool(options.threads);
  const auto backend = make_cpu_backend(pool);
  const Weights weights = gguf_weights(model.file, config, WeightType::f16, *backend);
  Decoder decoder(config, weights, *backend, max_len);
  const auto engine =
      make_cpu_engine(engine_spec, kv_spec(config, 1, max_len, max_len, false), pool);
  const SeqId seq = engine->open();

  std::vector<float> margins;
  while (static_cast<int>(tokens.size()) < max_len) {
    const int first = engine->next(seq);
    const Piece piece{seq, first, static_cast<int>(tokens.size()) - first};
    const Tensor logits =
        decoder.forward(*engine, {&piece, 1}, std::span(tokens).subspan(first), Outputs::last);
    const Choice choice = choose(logits.data, config.vocab);
    if (choice.token == tokenizer.eos()) break;
    tokens.push_back(choice.token);
    margins.push_back(choice.margin);
    if (!options.json) out << tokenizer.decode({choice.token}) << std::flush;
  }

  const std::vector<int32_t> generated(tokens.begin() + prompt_len, tokens.end());
  if (!options.json) {
    out << '\n';
    return;
  }
  const nlohmann::ordered_json result = {{"engine", options.engine},
                                         {"prompt_tokens", prompt_len},
                                         {"tokens", generated},
                                         {"margins", margins},
                                         {"text", tokenizer.decode(generated)}};
  out << result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace kvmark
