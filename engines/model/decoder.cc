#include "engines/model/decoder.h"

#include <numeric>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// Rolls the engine's open step back when the forward is left by an exception.
class StepGuard {
 public:
  StepGuard(KvEngine& engine, std::span<const Piece> pieces) : engine_(engine) {
    if (const std::optional<Refusal> refusal = engine.begin(pieces)) {
      throw RuntimeError("the engine refuses the step: " + refusal->reason);
    }
    open_ = true;
  }
  ~StepGuard() {
    if (open_) engine_.rollback();
  }
  StepGuard(const StepGuard&) = delete;
  StepGuard& operator=(const StepGuard&) = delete;

  void commit() {
    open_ = false;  // a failing commit rolls back itself
    engine_.commit();
  }

 private:
  KvEngine& engine_;
  bool open_ = false;
};

// Gives the engine the step's observer for the time of the step.
class ObserverGuard {
 public:
  ObserverGuard(KvEngine& engine, StepObserver* observer) : engine_(observer ? &engine : nullptr) {
    if (engine_) engine_->set_observer(observer);
  }
  ~ObserverGuard() {
    if (engine_) engine_->set_observer(nullptr);
  }
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;

 private:
  KvEngine* engine_;
};

const Weight* or_null(const Weight& bias) { return bias.empty() ? nullptr : &bias; }

}  // namespace

Decoder::Decoder(const ModelConfig& config, const Weights& weights, Backend& backend, int max_rows,
                 bool repeat_kv)
    : config_(config), weights_(weights), backend_(backend), repeat_kv_(repeat_kv) {
  check(max_rows >= 1, "Decoder: max_rows is {}; expected ≥ 1", max_rows);
  check_config(config);
  const int q = config.heads * config.head_dim, kv = config.kv_heads * config.head_dim;
  x_ = backend.alloc(max_rows, config.d_model);
  h_ = backend.alloc(max_rows, config.d_model);
  q_ = backend.alloc(max_rows, q);
  k_ = backend.alloc(max_rows, kv);
  v_ = backend.alloc(max_rows, kv);
  attended_ = backend.alloc(max_rows, q);
  up_ = backend.alloc(max_rows, config.ffn);
  if (config.family == Family::llama) gate_ = backend.alloc(max_rows, config.ffn);
  wanted_.reserve(max_rows);
  positions_.reserve(max_rows);
  if (!repeat_kv) return;
  k_repeated_ = backend.alloc(max_rows, q);
  v_repeated_ = backend.alloc(max_rows, q);
  for (int row = 0; row < max_rows; ++row) {
    for (int head = 0; head < config.heads; ++head) {
      repeat_rows_.push_back(row * config.kv_heads + head / config.group());
    }
  }
}

void Decoder::check_step(const KvEngine& engine, std::span<const Piece> pieces,
                         std::span<const int32_t> tokens) const {
  const KvSpec& spec = engine.spec();
  check(spec.layers == config_.layers && spec.heads == config_.heads &&
            spec.kv_heads == (repeat_kv_ ? config_.heads : config_.kv_heads) &&
            spec.k_dim == config_.head_dim && spec.v_dim == config_.head_dim,
        "Decoder: the engine was made for another shape than {}", config_.name);
  const int rows = std::accumulate(pieces.begin(), pieces.end(), 0,
                                   [](int sum, const Piece& piece) { return sum + piece.rows; });
  check(rows == static_cast<int>(tokens.size()), "Decoder: {} tokens for pieces of {} rows",
        tokens.size(), rows);
  check(rows >= 1 && rows <= x_.rows, "Decoder: a step of {} rows; made for 1 to {}", rows,
        x_.rows);
  for (const Piece& piece : pieces) {
    if (config_.family != Family::gpt2 || piece.first + piece.rows <= config_.context) continue;
    throw RuntimeError(fmt::format(
        "position {} is past the context of {}: it has {} learned positions; use shorter sequences",
        piece.first + piece.rows - 1, config_.name, config_.context));
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < config_.vocab) continue;
    throw RuntimeError(fmt::format("token {} is not in the vocabulary of {}; expected 0 to {}",
                                   token, config_.name, config_.vocab - 1));
  }
}

Tensor Decoder::forward(KvEngine& engine, std::span<const Piece> pieces,
                        std::span<const int32_t> tokens, Outputs logits, StepObserver* observer) {
  static StepObserver nobody;
  StepObserver& observe = observer ? *observer : nobody;
  check_step(engine, pieces, tokens);
  const ObserverGuard observer_guard(engine, observer);
  observe.enter(Phase::other);
  StepGuard step(engine, pieces);

  Tensor x = x_.slice(0, static_cast<int>(tokens.size()));
  embed(pieces, tokens, x);
  for (int layer = 0; layer < config_.layers; ++layer) {
    observe.enter_layer(layer);
    const LayerWeights& w = weights_.layers[layer];
    const Outputs outputs = layer + 1 < config_.layers ? Outputs::all : logits;

    observe.enter(Phase::qkv);
    const Tensor attended = attend(engine, layer, outputs, pieces, x);
    if (outputs == Outputs::none) break;

    observe.enter(Phase::out);
    x = keep_wanted(outputs, pieces, x);
    const Tensor h = h_.slice(0, x.rows);
    backend_.matmul(attended, w.wo, or_null(w.bo), h);
    backend_.add(x, h);

    observe.enter(Phase::ffn);
    norm(x, w.ffn_norm, w.ffn_norm_bias, h);
    backend_.matmul(feed_forward(w, h), w.w_down, or_null(w.b_down), h);
    backend_.add(x, h);
  }

  Tensor result;
  if (logits != Outputs::none) {
    observe.enter(Phase::lm_head);
    const Tensor h = h_.slice(0, x.rows);
    norm(x, weights_.final_norm, weights_.final_norm_bias, h);
    result = logits_of(x.rows);
    backend_.matmul(h, weights_.lm_head, nullptr, result);
  }
  observe.enter(Phase::other);
  step.commit();
  return result;
}

// x = embedding(token), plus the learned position in GPT-2.
void Decoder::embed(std::span<const Piece> pieces, std::span<const int32_t> tokens, Tensor x) {
  backend_.embed(weights_.embedding, tokens, x);
  if (config_.family != Family::gpt2) return;
  positions_.clear();
  for (const Piece& piece : pieces) {
    for (int i = 0; i < piece.rows; ++i) positions_.push_back(piece.first + i);
  }
  const Tensor h = h_.slice(0, x.rows);
  backend_.embed(weights_.positions, positions_, h);
  backend_.add(x, h);
}

void Decoder::norm(Tensor x, const Weight& gain, const Weight& bias, Tensor y) {
  if (config_.family == Family::gpt2) {
    backend_.layer_norm(x, gain, bias, config_.norm_eps, y);
  } else {
    backend_.rms_norm(x, gain, config_.norm_eps, y);
  }
}

// Norm, q, k, v and the attention over the cache. → (wanted rows, heads · head_dim)
Tensor Decoder::attend(KvEngine& engine, int layer, Outputs outputs, std::span<const Piece> pieces,
                       Tensor x) {
  const LayerWeights& w = weights_.layers[layer];
  const int n = x.rows;
  const Tensor h = h_.slice(0, n), q = q_.slice(0, n);
  Tensor k = k_.slice(0, n), v = v_.slice(0, n);
  norm(x, w.attn_norm, w.attn_norm_bias, h);
  backend_.matmul(h, w.wq, or_null(w.bq), q);
  backend_.matmul(h, w.wk, or_null(w.bk), k);
  backend_.matmul(h, w.wv, or_null(w.bv), v);
  if (repeat_kv_) {
    k = repeat(k, k_repeated_.slice(0, n));
    v = repeat(v, v_repeated_.slice(0, n));
  }
  const int wanted = outputs == Outputs::all    ? n
                     : outputs == Outputs::last ? static_cast<int>(pieces.size())
                                                : 0;
  const Tensor attended = attended_.slice(0, wanted);
  engine.attend(layer, outputs, q, k, v, attended);
  return attended;
}

// (n, kv_heads · head_dim) → (n, heads · head_dim): each KV head once for every query head.
Tensor Decoder::repeat(Tensor from, Tensor to) {
  const int dim = config_.head_dim;
  const std::span<const int> rows(repeat_rows_.data(), size_t(to.rows) * config_.heads);
  backend_.gather({from.data, from.rows * config_.kv_heads, dim}, rows,
                  {to.data, to.rows * config_.heads, dim});
  return to;
}

// The residual rows that the attention gave outputs for, packed.
Tensor Decoder::keep_wanted(Outputs outputs, std::span<const Piece> pieces, Tensor x) {
  if (outputs == Outputs::all || x.rows == static_cast<int>(pieces.size())) return x;
  wanted_.clear();
  int end = 0;
  for (const Piece& piece : pieces) wanted_.push_back((end += piece.rows) - 1);
  const Tensor kept = h_.slice(0, static_cast<int>(wanted_.size()));
  backend_.gather(x, wanted_, kept);
  std::swap(x_, h_);
  return kept;
}

// The inner activations of a feed-forward block. → (rows, ffn)
Tensor Decoder::feed_forward(const LayerWeights& w, Tensor h) {
  const Tensor up = up_.slice(0, h.rows);
  backend_.matmul(h, w.w_up, or_null(w.b_up), up);
  if (config_.family == Family::gpt2) {
    backend_.gelu(up);
    return up;
  }
  const Tensor gate = gate_.slice(0, h.rows);
  backend_.matmul(h, w.w_gate, nullptr, gate);
  backend_.silu_mul(gate, up);
  return gate;
}

// Logits are by far the widest rows, and most decoders only ever want a few: memory is taken for as
// many as are asked for. The backend keeps what was outgrown, so callers ask for few different
// counts: one for each sequence, and those of a scored chunk.
Tensor Decoder::logits_of(int rows) {
  if (rows > logits_.rows) logits_ = backend_.alloc(rows, config_.vocab);
  return logits_.slice(0, rows);
}

}  // namespace kvmark
