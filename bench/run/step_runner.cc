#include "bench/run/step_runner.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "engines/core/check.h"
#include "engines/cpu/cpu_backend.h"
#include "engines/model/gguf.h"
#include "engines/model/tokenizer.h"

namespace kvmark {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw RuntimeError(fmt::format("{}: cannot be read", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

// A counter-based generator (splitmix64, Steele et al., 2014): the same tokens on every machine.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::vector<int32_t> text_tokens(const GgufFile& file, const ScoreSpec& score) {
  std::vector<int32_t> tokens = Tokenizer(file).encode(read_text(score.text));
  const int needed = score.positions + 1;
  if (static_cast<int>(tokens.size()) < needed) {
    throw UsageError(
        fmt::format("{}: has {} tokens with this model's vocabulary, score.positions = {} needs "
                    "{}: use a longer "
                    "text or score fewer positions",
                    score.text, tokens.size(), score.positions, needed));
  }
  return tokens;
}

}  // namespace

ModelRunner::ModelRunner(const Case& c, ThreadPool& pool)
    : config_(c.model),
      backend_(make_cpu_backend(pool)),
      greedy_(c.tokens == TokenMode::greedy),
      prompt_rows_(c.first_rows()) {
  std::vector<int32_t> text;
  if (c.source.kind == ModelSource::Kind::file) {
    const GgufFile file(c.source.name);
    weights_ = gguf_weights(file, config_, c.source.weights, *backend_);
    if (!c.score.text.empty()) text = text_tokens(file, c.score);
  } else {
    weights_ = seeded_weights(config_, c.source.seed, c.source.weights, *backend_);
  }
  decoder_ = std::make_unique<Decoder>(config_, weights_, *backend_, max_rows_of(c), c.repeat_kv);
  make_tokens(c, text);
  argmax_.resize(c.batch);
}

// Real text where the case has one (each sequence starts elsewhere in it), seeded tokens otherwise.
void ModelRunner::make_tokens(const Case& c, std::span<const int32_t> text) {
  const int settle_room = 64;  // settle steps may run past a short workload
  const int length = std::max(c.committed(), settle_room) + 1;
  tokens_.assign(c.batch, std::vector<int32_t>(length));
  for (int s = 0; s < c.batch; ++s) {
    for (int i = 0; i < length; ++i) {
      const uint64_t draw = mix(mix(c.seed * 0x10001 + s) + i);
      tokens_[s][i] = text.empty() ? static_cast<int32_t>(draw % config_.vocab)
                                   : text[(size_t{97} * s + i) % text.size()];
    }
  }
  if (!text.empty()) score_tokens_.assign(text.begin(), text.begin() + c.score.positions + 1);
}

void ModelRunner::step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
                       StepObserver* observer) {
  packed_.clear();
  for (size_t s = 0; s < pieces.size(); ++s) {
    const auto from = tokens_[s].begin() + pieces[s].first;
    packed_.insert(packed_.end(), from, from + pieces[s].rows);
  }
  const Tensor logits = forward(engine, pieces, packed_, outputs, observer);
  if (outputs == Outputs::none) return;
  // Every engine pays for choosing its token; only greedy decoding goes on with it.
  if (observer) observer->enter(Phase::other);
  const auto chosen = std::span(argmax_).first(pieces.size());
  backend_->argmax(logits, chosen);
  if (!greedy_) return;
  for (size_t s = 0; s < pieces.size(); ++s) {
    const size_t next = static_cast<size_t>(pieces[s].first) + pieces[s].rows;
    // A short run (settling) stays within the prompt, which is given.
    if (next >= prompt_rows_ && next < tokens_[s].size()) tokens_[s][next] = chosen[s];
  }
}

Tensor ModelRunner::forward(KvEngine& engine, std::span<const Piece> pieces,
                            std::span<const int32_t> tokens, Outputs outputs,
                            StepObserver* observer) {
  return decoder_->forward(engine, pieces, tokens, outputs, observer);
}

AttentionRunner::AttentionRunner(const Case& c, ThreadPool& pool)
    : spec_(kv_spec_of(c)), synthetic_(spec_, c.seed), pool_(pool), batch_(c.batch) {
  rows_.resize(size_t(spec_.layers) * batch_);
  out_.resize(size_t(spec_.max_rows) * spec_.heads * spec_.v_dim);
}

void AttentionRunner::stage(int first, int rows) {
  first_ = first;
  staged_ = rows;
  pool_.run(static_cast<int>(rows_.size()), [&](int i, int) {
    Rows& to = rows_[i];
    to.q.resize(size_t(rows) * spec_.heads * spec_.k_dim);
    to.k.resize(size_t(rows) * spec_.kv_heads * spec_.k_dim);
    to.v.resize(size_t(rows) * spec_.kv_heads * spec_.v_dim);
    synthetic_.fill(i / batch_, i % batch_, first, rows,
                    {to.q.data(), rows, spec_.heads * spec_.k_dim},
                    {to.k.data(), rows, spec_.kv_heads * spec_.k_dim},
                    {to.v.data(), rows, spec_.kv_heads * spec_.v_dim});
  });
}

// The rows of all pieces one behind the other; a single sequence needs no copy.
Tensor AttentionRunner::pack(int layer, std::span<const Piece> pieces,
                             std::vector<float> Rows::*part, int cols,
                             std::vector<float>& scratch) {
  const auto rows_of = [&](size_t s) {
    const Piece& piece = pieces[s];
    check(piece.first >= first_ && piece.first + piece.rows <= first_ + staged_,
          "rows [{}, {}) are not staged", piece.first, piece.first + piece.rows);
    std::vector<float>& staged = rows_[layer * batch_ + s].*part;
    return Tensor{staged.data() + int64_t{piece.first - first_} * cols, piece.rows, cols};
  };
  if (pieces.size() == 1) return rows_of(0);
  scratch.clear();
  for (size_t s = 0; s < pieces.size(); ++s) {
    const Tensor rows = rows_of(s);
    scratch.insert(scratch.end(), rows.data, rows.data + rows.size());
  }
  return {scratch.data(), static_cast<int>(scratch.size() / cols), cols};
}

void AttentionRunner::step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
                           StepObserver* observer) {
  if (const auto refusal = engine.begin(pieces)) throw RuntimeError(refusal->reason);
  for (int layer = 0; layer < spec_.layers; ++layer) {
    if (observer) observer->enter_layer(layer);
    const bool last_layer = layer + 1 == spec_.layers;
    const Outputs wanted = outputs == Outputs::last && !last_layer ? Outputs::all : outputs;
    const Tensor q = pack(layer, pieces, &Rows::q, spec_.heads * spec_.k_dim, q_);
    const Tensor k = pack(layer, pieces, &Rows::k, spec_.kv_heads * spec_.k_dim, k_);
    const Tensor v = pack(layer, pieces, &Rows::v, spec_.kv_heads * spec_.v_dim, v_);
    const int out_rows = wanted == Outputs::all    ? q.rows
                         : wanted == Outputs::last ? static_cast<int>(pieces.size())
                                                   : 0;
    engine.attend(layer, wanted, q, k, v, {out_.data(), out_rows, spec_.heads * spec_.v_dim});
    if (observer) observer->enter(Phase::other);
  }
  engine.commit();
}

}  // namespace kvmark
