#include "bench/plan/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/plan/thresholds.h"
#include "engines/catalog/engine_spec.h"
#include "engines/core/split.h"
#include "engines/model/config.h"

namespace kvmark {
namespace {

constexpr double kMaxPositions = 1 << 24;
constexpr double kMaxSeed = 9007199254740992.0;  // 2^53: exact in every JSON reader

Field text(std::string key, std::string fallback, std::string doc) {
  Field f;
  f.key = std::move(key);
  f.fallback = std::move(fallback);
  f.doc = std::move(doc);
  return f;
}

Field choice(std::string key, std::string fallback, std::vector<std::string> choices,
             std::string doc) {
  Field f = text(std::move(key), std::move(fallback), std::move(doc));
  f.choices = std::move(choices);
  return f;
}

Field integer(std::string key, std::string fallback, double min, double max, std::string doc) {
  Field f = text(std::move(key), std::move(fallback), std::move(doc));
  f.type = FieldType::integer;
  f.min = min;
  f.max = max;
  return f;
}

Field integer_or(std::vector<std::string> words, Field f) {
  f.choices = std::move(words);
  return f;
}

Field number(std::string key, std::string fallback, double min, double max, std::string doc) {
  Field f = integer(std::move(key), std::move(fallback), min, max, std::move(doc));
  f.type = FieldType::number;
  return f;
}

Field boolean(std::string key, std::string fallback, std::string doc) {
  Field f = text(std::move(key), std::move(fallback), std::move(doc));
  f.type = FieldType::boolean;
  return f;
}

Field axis(Field f, std::string flag = "") {
  f.several = true;
  f.flag = std::move(flag);
  return f;
}

Field flagged(Field f, std::string flag) {
  f.flag = std::move(flag);
  return f;
}

Field derived(Field f, std::string words) {
  f.fallback_words = std::move(words);
  return f;
}

Field typed(FieldType type, Field f) {
  f.type = type;
  return f;
}

std::vector<Field> model_fields() {
  const std::string own = "the model's own";
  return {
      axis(derived(
          choice("model.preset", "", model_preset_names(),
                 "A named shape with seeded random weights. Exactly one of `preset`, `file` "
                 "and `dir` stands in a plan; `--model` replaces it."),
          "`seed-gqa` where neither `file` nor `dir` is given")),
      axis(text(
          "model.file", "",
          "A GGUF file with trained weights. The path counts from the plan's folder, else from "
          "the current one.")),
      axis(text("model.dir", "",
                "A folder with a Hugging Face `config.json`: its shape, with seeded weights.")),
      integer("model.weights.seed", "1", 0, kMaxSeed,
              "Seed of random weights (`preset` and `dir`)."),
      axis(derived(choice("model.weights.dtype", "", {"f32", "f16", "bf16"},
                          "How the weights are kept in memory."),
                   "`f16` for a file, else `f32`")),
      axis(derived(
          integer_or({"auto"},
                     integer("model.layers", "", 1, 1024,
                             "Decoder layers; `auto`: as many as give `workload.working_set_gib`. "
                             "This and the following fields change the shape of a `preset` or "
                             "`dir`; the shape of a `file` is fixed.")),
          own)),
      axis(derived(
          integer("model.d_model", "", 1, 65536,
                  "Width of the residual stream. Where it changes, `head_dim` and `ffn` keep "
                  "their proportion to it unless they are given too."),
          own)),
      axis(typed(FieldType::heads,
                 derived(text("model.heads", "",
                              "Query heads, or `query:kv` heads such as `8:2`. `head_dim` stays."),
                         own)),
           "--heads"),
      axis(derived(integer("model.kv_heads", "", 1, 1024,
                           "Stored heads; must divide the query heads. Not together with `q:kv`."),
                   own)),
      axis(derived(integer("model.head_dim", "", 1, 1024, "Channels of a head."), own)),
      axis(derived(integer("model.ffn", "", 1, 1 << 20, "Inner width of the feed-forward block."),
                   own)),
      axis(derived(integer("model.vocab", "", 2, 1 << 22, "Size of the vocabulary."), own)),
      axis(derived(integer("model.context", "", 1, kMaxPositions,
                           "Positions the model is made for: a limit at model level."),
                   own)),
      derived(number("model.rope_theta", "", 1, 1e12, "Base of the rotary angles (llama family)."),
              own),
      derived(boolean("model.qkv_bias", "", "Biases of q, k and v (llama family; Qwen2 has them)."),
              own),
      derived(boolean("model.tied_embeddings", "", "The output matrix is the embedding itself."),
              own),
  };
}

std::vector<Field> workload_fields() {
  return {
      axis(choice(
          "workload.level", "model", {"model", "attention"},
          "`model`: whole decoder steps. `attention`: the attention alone, on synthetic q, k "
          "and v, so that long contexts fit and are filled quickly.")),
      axis(integer("workload.prompt_len", "0", 0, kMaxPositions,
                   "Tokens before the first generated one: the depth that decoding starts at. 0 "
                   "starts from one seeded token."),
           "--prompt-len"),
      axis(integer("workload.gen_len", "64", 1, kMaxPositions, "Generated tokens (decode steps)."),
           "--gen-len"),
      axis(derived(integer("workload.seq_len", "", 1, kMaxPositions,
                           "`prompt_len` + `gen_len`, given in place of one of them."),
                   "none"),
           "--seq-len"),
      axis(integer("workload.batch", "1", 1, 4096, "Sequences that go in lockstep."), "--batch"),
      axis(derived(integer("workload.max_seq_len", "", 1, kMaxPositions,
                           "What the cache is made for; `contiguous` reserves all of it."),
                   "the model's context; at attention level what the run needs, rounded up to 64")),
      axis(derived(number("workload.working_set_gib", "", 0.001, 1024,
                          "With `model.layers: auto`, at attention level: GiB of keys and values, "
                          "counted as f16, that a decode step reads at least. The engines of a "
                          "group have equal layers, so f32 reads twice as much and int4:g32 0.28 "
                          "of it."),
                   "none: the layers are given")),
      axis(integer("workload.seed", "1", 0, kMaxSeed,
                   "Seed of the tokens, or of the synthetic q, k and v.")),
      axis(choice("workload.tokens", "forced", {"forced", "greedy"},
                  "`forced`: every engine gets the same seeded tokens. `greedy`: it gets its own "
                  "most likely token.")),
      axis(choice("workload.pool_order", "fresh", {"fresh", "shuffled"},
                  "Order in which a paged engine hands out its blocks; `shuffled` shows what a "
                  "fragmented pool costs.")),
      axis(boolean("workload.repeat_kv", "false",
                   "Stores a copy of every KV head for each of its query heads, to show what that "
                   "costs.")),
  };
}

std::vector<Field> sampling_fields() {
  return {
      flagged(
          integer(
              "sampling.rounds", "3", 1, 100000,
              "Rounds at most; the first always runs. Engines take turns within a round. 6 or more "
              "give medians with intervals."),
          "--rounds"),
      integer("sampling.settle_steps", "8", 0, 100000,
              "Untimed steps before each round, then rewound."),
      number(
          "sampling.target_width", "0.02", 0, 1,
          "Stops once the 95 % interval of the median is narrower than this fraction of it (from "
          "6 rounds on)."),
      number("sampling.budget_s", "10", 0, 1e7, "No round of a case starts after so many seconds."),
      number("sampling.max_case_s", "600", 0, 1e7,
             "A case whose one round is predicted to take longer is skipped; `--dry-run` says so "
             "beforehand."),
  };
}

std::vector<Field> score_fields() {
  return {
      derived(text("score.text", "",
                   "A UTF-8 text that is scored through the cache: KLD, top-1 agreement and NLL "
                   "against the uncompressed reference. Needs `model.file` and model level."),
              "none: no scoring"),
      integer("score.positions", "1024", 1, kMaxPositions, "Scored positions."),
      integer("score.chunk", "128", 1, 4096, "Rows that a scoring step feeds."),
      derived(
          number("loss_gates.*.attend_rel_rms_max", "", 0, 1e6,
                 "For the engines of the codec `*` (`f16`, `int8:g32`, `k=f16,v=int8:g32`): the "
                 "largest relative RMS error of the attention output against f32. A miss makes "
                 "the row invalid (exit 4)."),
          "no gate"),
      derived(number("loss_gates.*.kld_mean_max", "", 0, 1e6,
                     "The largest mean KL divergence of the next-token distributions, in nats."),
              "no gate"),
      derived(number("loss_gates.*.top1_min", "", 0, 1,
                     "The smallest share of positions whose most likely token is the same."),
              "no gate"),
  };
}

Field threshold_field() {
  return derived(
      number("thresholds.*", "", 0, kLargestThreshold,
             "For `kvmark compare`: the relative change of the metric `*` "
             "(`latency.tpot_ms`, `memory.kv_peak_bytes`) beyond which it is worse; 0.05 "
             "is 5 %. A metric that is else only shown decides then too."),
      "as in [metrics](metrics.md)");
}

std::vector<Field> make_fields() {
  Field name = derived(text("name", "", "What the run is called."), "the file's name");
  Field schema = derived(text("$schema", "", "For editors; kvmark does not read it."), "none");
  Field engines = typed(FieldType::engine,
                        text("engines", fmt::format("{}", fmt::join(preset_names(), ",")),
                             "What is compared: presets, codecs or `layout/codec/policy`; see "
                             "`kvmark list engines`."));
  Field devices = choice("devices", "cpu", {"cpu", "cuda"},
                         "Where it runs. Without such a device the rows say `skipped`.");
  Field threads = derived(integer("threads", "", 1, 1024, "Threads of a worker."),
                          "the cores that the process may use");

  Field pin = boolean("pin", "false",
                      "Keeps each thread of a worker on a CPU of its own, in the order of the CPUs "
                      "that the process may use (Linux).");

  Field count = derived(
      choice("count", "", {"callgrind"},
             "Counts the instructions of the decode steps under valgrind in place of timing them, "
             "in one round: needs `threads: 1`. `--count` sets both."),
      "none: steps are timed");

  std::vector<Field> all = {name, schema};
  const auto append = [&](std::vector<Field> part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  append(model_fields());
  append({axis(engines, "--engine"), axis(devices, "--device")});
  append(workload_fields());
  append(sampling_fields());
  append({axis(threads, "--threads"), axis(pin), flagged(count, "--count")});
  append(score_fields());
  append({threshold_field()});
  return all;
}

constexpr std::string_view kThresholds = "thresholds.";

// "loss_gates.int8:g32.top1_min" → "loss_gates.*.top1_min"; "thresholds.latency.tpot_ms" →
// "thresholds.*".
std::string pattern_of(std::string_view key) {
  if (key.starts_with(kThresholds)) return "thresholds.*";
  constexpr std::string_view kGates = "loss_gates.";
  if (key.substr(0, kGates.size()) != kGates) return std::string(key);
  const size_t dot = key.find('.', kGates.size());
  return "loss_gates.*" + (dot == std::string_view::npos ? "" : std::string(key.substr(dot)));
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> table = make_fields();
  return table;
}

const Field* find_field(std::string_view key) {
  const std::string pattern = pattern_of(key);
  for (const Field& f : fields()) {
    if (f.key == pattern) return &f;
  }
  return nullptr;
}

std::vector<std::string> split_key(std::string_view key) {
  if (key.starts_with(kThresholds)) {
    return {"thresholds", std::string(key.substr(kThresholds.size()))};
  }
  return split(key, '.');
}

bool is_section(std::string_view key) {
  const std::string start = pattern_of(key) + ".";
  return std::any_of(fields().begin(), fields().end(),
                     [&](const Field& f) { return starts_with(f.key, start); });
}

std::vector<std::string> names_under(std::string_view section) {
  const std::string start = section.empty() ? "" : pattern_of(section) + ".";
  std::vector<std::string> names;
  for (const Field& f : fields()) {
    if (!starts_with(f.key, start)) continue;
    const std::string name =
        f.key.substr(start.size(), f.key.find('.', start.size()) - start.size());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string expected_words(const Field& f) {
  switch (f.type) {
    case FieldType::text:
      return f.choices.empty() ? "a text" : fmt::format("one of: {}", fmt::join(f.choices, ", "));
    case FieldType::integer:
      return fmt::format(
          "a whole number from {:.0f} to {:.0f}{}{}", f.min, f.max,
          f.several ? ", or a range such as `128-8192*2`" : "",
          f.choices.empty() ? "" : fmt::format(", or `{}`", fmt::join(f.choices, "`, `")));
    case FieldType::number:
      return fmt::format("a number from {} to {}", f.min, f.max);
    case FieldType::boolean:
      return "`true` or `false`";
    case FieldType::heads:
      return "`query:kv` heads such as `8:2`, or a number of query heads, each from 1 to 1024";
    case FieldType::engine:
      return "an engine such as `paged:16/int8:g32`";
  }
  return "";
}

}  // namespace kvmark
