// One thing to measure, whole: everything that its numbers depend on, but for the machine.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engines/catalog/engine_spec.h"
#include "engines/core/backend.h"
#include "engines/core/kv_engine.h"
#include "engines/model/config.h"

namespace kvmark {

// `model`: whole decoder steps. `attention`: the attention alone, on synthetic q, k and v.
enum class Level { model, attention };
// `forced`: every engine gets the same given tokens. `greedy`: it gets its own argmax.
enum class TokenMode { forced, greedy };

// What a case gives in place of times. `callgrind`: executed instructions, under valgrind's tool of
// that name, which has AVX2 at most and serves one thread.
enum class Counting { none, callgrind };

// Where the parameters come from.
struct ModelSource {
  enum class Kind { preset, file, dir } kind = Kind::preset;
  std::string name;   // the preset, or the path, ready to be opened
  uint64_t seed = 1;  // of seeded weights (preset and dir)
  WeightType weights = WeightType::f32;

  bool real() const {
    return kind == Kind::file;
  }  // trained parameters: KLD and top-1 mean something
};

// Text whose tokens are scored through the cache for format loss; model level, real weights.
struct ScoreSpec {
  std::string text;   // path of a UTF-8 file, ready to be opened; "": no scoring
  int positions = 0;  // scored positions
  int chunk = 128;    // rows a step
};

// A miss makes the row `invalid` (exit 4). Unset: reported, not gated.
struct LossGate {
  std::optional<double> attend_rel_rms_max, kld_mean_max, top1_min;
};

struct Case {
  EngineSpec engine;
  std::string preset;  // of the engine, "" where it has none
  std::string device = "cpu";
  ModelSource source;
  ModelConfig model;
  Level level = Level::model;
  int prompt_len = 0;   // 0: starts from one seeded token
  int gen_len = 1;      // ≥ 1
  int max_seq_len = 0;  // what the cache is made for
  int batch = 1;
  int threads = 1;
  bool pin = false;  // each thread on a CPU of its own
  Counting count = Counting::none;
  uint64_t seed = 1;  // of tokens, or of synthetic q, k, v
  TokenMode tokens = TokenMode::forced;
  PoolOrder pool_order = PoolOrder::fresh;
  bool repeat_kv = false;
  ScoreSpec score;
  LossGate gate;

  int first_rows() const { return prompt_len > 0 ? prompt_len : 1; }  // rows of the first step
  // Positions in the cache when the last token has been generated.
  int committed() const { return first_rows() + gen_len - 1; }
  int seq_len() const { return prompt_len + gen_len; }
  bool has_prompt() const { return prompt_len > 0; }
  bool counted() const { return count != Counting::none; }
};

// The record's "case" object, complete enough to make the case again (workers, --resume).
nlohmann::ordered_json to_json(const Case& c);
// Keys that are missing have their defaults (an older record); throws RuntimeError that names the
// key when a value cannot be read.
Case case_from_json(const nlohmann::ordered_json& json);

// 16 hex digits over the canonical case (sorted keys, 64-bit FNV-1a): values at their default,
// `preset`, the gate and paths' folders left out, so that a new axis keeps old ids, and a gate or a
// checkout elsewhere still pairs.
std::string case_id(const Case& c);
// The same for everything but the engine: cases of one group.
std::string group_id(const Case& c);

// What the engine of this case is made for: sequences, rows and lengths of the workload and of the
// scoring. Settle steps and rounds reuse the same sequences.
KvSpec kv_spec_of(const Case& c);
// Rows that one step may feed, all sequences together, a multiple of `batch`: a cached engine is
// fed a long prompt in chunks of at most kChunkRows (cutting a prefill changes nothing), recompute
// gets the whole of every sequence at once. Never less than kShortRows for a sequence, so that
// short verification runs fit, nor than a scoring step.
int max_rows_of(const Case& c);
inline constexpr int kChunkRows = 512;
inline constexpr int kShortRows = 64;

// Predicted before anything runs: bytes by formula (cache, weights, activations) and seconds of one
// round from FLOPs and bytes at rates of an ordinary core; an estimate, within a factor of 2 or 3.
struct Prediction {
  int64_t kv_live_bytes = 0;  // committed rows at the end of a round
  int64_t kv_bytes = 0;       // reserved by the engine
  int64_t weight_bytes = 0;
  int64_t total_bytes = 0;             // the worker process
  double round_s = 0;                  // one round, settle steps included
  double once_s = 0;                   // loading, filling, verifying, scoring
  int64_t positions_computed = 0;      // of one round and sequence
  int64_t kv_bytes_read_per_step = 0;  // mean over the decode steps
  int64_t weight_bytes_read_per_step = 0;
  double flops_per_step = 0;         // mean over the decode steps
  double attend_flops_per_step = 0;  // of these, the attention's

  // Where the worker measures how fast the machine reads: as many bytes as a decode step reads, at
  // most kMaxCeilingBytes; 0 where steps read no stored rows, and where they are counted. Beside
  // them as many again, read in pages of `ceiling_page_bytes` (a block of one layer), where the
  // pool's order is shuffled; 0 elsewhere.
  int64_t ceiling_bytes = 0;
  int64_t ceiling_page_bytes = 0;
};
// Beyond the last-level cache the rate no longer depends on the size.
inline constexpr int64_t kMaxCeilingBytes = int64_t{512} << 20;
Prediction predict(const Case& c, int settle_steps);

}  // namespace kvmark
