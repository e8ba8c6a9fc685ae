#include "bench/run/step_runner.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "engines/core/check.h"
#include "engines/cpu/cpu_backend.h"
#include "engines/model/gguf.h"
#include "engines/model/noise.h"
#include "engines/model/tokenizer.h"

namespace kvmark {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw RuntimeError(fmt::format("{}: cannot be read", path));
  return {std::istreambuf_iterator<char>(in), {}};
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

KvSpec unrepeated(KvSpec spec, int kv_heads) {
  spec.kv_heads = kv_heads;
  return spec;
}

// Rows of each piece.
int rows_in_lockstep(std::span<const Piece> pieces) {
  const Piece& head = pieces[0];
  for (const Piece& piece : pieces) {
    check(piece.first == head.first && piece.rows == head.rows, "the sequences go in lockstep");
  }
  return head.rows;
}

// Copies each of the `heads` head rows at the front of `row` to `repeat` heads, in place.
void repeat_heads(float* row, int heads, int repeat, int dim) {
  for (int to = heads * repeat - 1; to > 0; --to) {
    std::copy_n(row + to / repeat * dim, dim, row + to * dim);
  }
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
  const int length = std::max(c.committed(), kShortRows) + 1;  // short runs may be the longer ones
  tokens_.assign(c.batch, std::vector<int32_t>(length));
  for (int s = 0; s < c.batch; ++s) {
    const uint64_t stream = stream_of({c.seed, static_cast<uint64_t>(s)});
    for (int i = 0; i < length; ++i) {
      tokens_[s][i] = text.empty() ? static_cast<int32_t>(hash_at(stream, i) % config_.vocab)
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
    : spec_(kv_spec_of(c)),
      repeat_(spec_.kv_heads / c.model.kv_heads),
      synthetic_(unrepeated(spec_, c.model.kv_heads), c.seed),
      pool_(pool),
      batch_(c.batch) {
  rows_.resize(spec_.layers);
  out_.resize(size_t(spec_.max_rows) * spec_.heads * spec_.v_dim);
}

void AttentionRunner::stage(int first, int rows) {
  first_ = first;
  staged_ = rows;
  const int q_cols = spec_.heads * spec_.k_dim, k_cols = spec_.kv_heads * spec_.k_dim,
            v_cols = spec_.kv_heads * spec_.v_dim;
  for (Rows& layer : rows_) {
    layer.q.resize(size_t(rows) * batch_ * q_cols);
    layer.k.resize(size_t(rows) * batch_ * k_cols);
    layer.v.resize(size_t(rows) * batch_ * v_cols);
  }
  // A position a call: the sequences' rows of a position lie side by side.
  pool_.run(spec_.layers * rows, [&](int index, int) {
    const int layer = index / rows, row = index % rows;
    for (int s = 0; s < batch_; ++s) {
      const size_t at = size_t(row) * batch_ + s;
      fill_row(layer, s, first + row, &rows_[layer].q[at * q_cols], &rows_[layer].k[at * k_cols],
               &rows_[layer].v[at * v_cols]);
    }
  });
}

// `q` may be null.
void AttentionRunner::fill_row(int layer, int sequence, int position, float* q, float* k,
                               float* v) const {
  const int kv_heads = spec_.kv_heads / repeat_;
  synthetic_.fill(layer, sequence, position, 1, {q, 1, spec_.heads * spec_.k_dim},
                  {k, 1, kv_heads * spec_.k_dim}, {v, 1, kv_heads * spec_.v_dim});
  repeat_heads(k, kv_heads, repeat_, spec_.k_dim);
  repeat_heads(v, kv_heads, repeat_, spec_.v_dim);
}

// The rows of all pieces one behind the other. One sequence, or one row of each, lies so already.
Tensor AttentionRunner::pack(std::span<const Piece> pieces, std::vector<float>& staged, int cols,
                             std::vector<float>& scratch) const {
  const auto row_at = [&](int position, size_t sequence) {
    return staged.data() + (int64_t{position - first_} * batch_ + sequence) * cols;
  };
  const int each = rows_in_lockstep(pieces), first = pieces[0].first;
  check(first >= first_ && first + each <= first_ + staged_, "rows [{}, {}) are not staged", first,
        first + each);
  const int rows = each * static_cast<int>(pieces.size());
  if (pieces.size() == 1 || each == 1) return {row_at(first, 0), rows, cols};
  scratch.clear();
  for (size_t s = 0; s < pieces.size(); ++s) {
    for (int i = 0; i < each; ++i) {
      const float* row = row_at(first + i, s);
      scratch.insert(scratch.end(), row, row + cols);
    }
  }
  return {scratch.data(), rows, cols};
}

void AttentionRunner::step(KvEngine& engine, std::span<const Piece> pieces, Outputs outputs,
                           StepObserver* observer) {
  if (const auto refusal = engine.begin(pieces)) throw RuntimeError(refusal->reason);
  for (int layer = 0; layer < spec_.layers; ++layer) {
    if (observer) observer->enter_layer(layer);
    if (outputs == Outputs::none) {
      store(engine, layer, pieces);
    } else {
      attend_staged(engine, layer, pieces, outputs);
    }
    if (observer) observer->enter(Phase::other);
  }
  engine.commit();
}

void AttentionRunner::attend_staged(KvEngine& engine, int layer, std::span<const Piece> pieces,
                                    Outputs outputs) {
  const bool last_layer = layer + 1 == spec_.layers;
  const Outputs wanted = outputs == Outputs::last && !last_layer ? Outputs::all : outputs;
  Rows& rows = rows_[layer];
  const Tensor q = pack(pieces, rows.q, spec_.heads * spec_.k_dim, q_);
  const Tensor k = pack(pieces, rows.k, spec_.kv_heads * spec_.k_dim, k_);
  const Tensor v = pack(pieces, rows.v, spec_.kv_heads * spec_.v_dim, v_);
  const int out_rows = wanted == Outputs::all ? q.rows : static_cast<int>(pieces.size());
  engine.attend(layer, wanted, q, k, v, {out_.data(), out_rows, spec_.heads * spec_.v_dim});
}

// A layer's rows at a time: those of a long context in all layers would take more memory than many
// a cache.
void AttentionRunner::store(KvEngine& engine, int layer, std::span<const Piece> pieces) {
  const int k_cols = spec_.kv_heads * spec_.k_dim, v_cols = spec_.kv_heads * spec_.v_dim;
  const int each = rows_in_lockstep(pieces), rows = each * static_cast<int>(pieces.size());
  k_.resize(size_t(rows) * k_cols);
  v_.resize(size_t(rows) * v_cols);
  pool_.run(rows, [&](int row, int) {
    const int sequence = row / each;
    fill_row(layer, sequence, pieces[sequence].first + row % each, nullptr,
             &k_[size_t(row) * k_cols], &v_[size_t(row) * v_cols]);
  });
  engine.attend(layer, Outputs::none, {}, {k_.data(), rows, k_cols}, {v_.data(), rows, v_cols}, {});
}

}  // namespace kvmark
