// Test support: drives an engine with rows that are a function of tokens, and checks every output
// against fp64 attention over the rows that the engine itself stored.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engines/catalog/engine_spec.h"
#include "engines/core/kv_engine.h"
#include "engines/core/thread_pool.h"
#include "engines/cpu/cpu_engine.h"

namespace kvmark::testing {

using Tokens = std::vector<uint64_t>;

// A small shape that no group of channels, tile or block divides, with RoPE on part of a key.
KvSpec odd_spec();

// Tokens [first, first + count) of stream `stream`; no two streams share one.
Tokens tokens(int stream, int first, int count);
Tokens joined(Tokens a, const Tokens& b);

// What to append to a sequence.
struct Append {
  SeqId seq;
  Tokens tokens;
};

class Harness {
 public:
  explicit Harness(const std::string& engine, const KvSpec& spec = odd_spec(), int threads = 1,
                   const CpuEngineOptions& options = {});

  KvEngine& engine() { return *engine_; }
  const KvSpec& spec() const { return engine_->spec(); }

  SeqId open();
  SeqId fork(SeqId seq, int length);
  void close(SeqId seq);
  void truncate(SeqId seq, int length);
  const Tokens& content(SeqId seq) const { return content_.at(seq); }
  const std::map<SeqId, Tokens>& contents() const { return content_; }

  // One step. The outputs of the appended rows, a vector for each append: (layers, rows, heads ·
  // v_dim). An engine without a cache is fed the older rows too; their outputs are dropped.
  std::vector<std::vector<float>> step(const std::vector<Append>& appends);
  std::vector<float> append(SeqId seq, const Tokens& more) { return step({{seq, more}})[0]; }
  // A step whose last layer was attended but which is forgotten.
  void rolled_back_step(const std::vector<Append>& appends);
  // A step whose rows want no outputs, or only the last of each append (layers, 1, heads · v_dim).
  void fill(const std::vector<Append>& appends);
  std::vector<std::vector<float>> step_last(const std::vector<Append>& appends);

  // k, then v, of rows [0, content) in every layer, as stored.
  std::vector<float> stored(SeqId seq) const;

  // Puts an infinity or NaN into one value of the next step's k (or v) in its last layer.
  void spoil(float value, bool in_v) {
    spoil_ = value;
    spoil_v_ = in_v;
    spoiled_ = true;
  }

  // The largest relative RMS error of a layer's outputs so far, over the stored rows.
  double worst_error() const { return worst_error_; }

 private:
  class Oracle;
  struct Fed {
    std::vector<Piece> pieces;
    int rows = 0;
  };
  Fed begin(const std::vector<Append>& appends);
  void attend(const std::vector<Append>& appends, const Fed& fed, Outputs outputs,
              std::vector<std::vector<float>>* results);
  void commit(const std::vector<Append>& appends);

  ThreadPool pool_;
  std::unique_ptr<KvEngine> engine_;
  std::map<SeqId, Tokens> content_;
  double worst_error_ = 0;
  float spoil_ = 0;
  bool spoil_v_ = false;
  bool spoiled_ = false;
};

// The outputs of `all` (layers, rows, heads · v_dim) for rows [first, …) only.
std::vector<float> rows_from(const std::vector<float>& all, int first, const KvSpec& spec);

// The outputs of a fresh engine fed with everything at once.
std::vector<float> fresh_outputs(const std::string& engine, const Tokens& all,
                                 const KvSpec& spec = odd_spec());

// Equal bit for bit (NaN included).
::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b);

// Every engine that the catalog does not refuse, and mixed codecs and growth beside them.
std::vector<std::string> engine_names();
// A test's name for an engine: letters, digits and `_`.
std::string test_name(const ::testing::TestParamInfo<std::string>& info);

}  // namespace kvmark::testing
