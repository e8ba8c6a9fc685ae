// What a case will take, by formula.
#include <algorithm>
#include <vector>

#include "bench/plan/case.h"
#include "engines/catalog/catalog.h"

namespace kvmark {
namespace {

// Rates of one ordinary core. They only say what is worth starting; nothing measured uses them.
constexpr double kGemmFlops = 80e9;         // dense products of many rows
constexpr double kAttendFlops = 60e9;       // attention
constexpr double kBytes = 12e9;             // streaming from memory
constexpr double kMaxBytes = 40e9;          // all cores together
constexpr double kLayerSeconds = 20e-6;     // starting the parts of a layer
constexpr double kParameterSeconds = 8e-9;  // making or converting a parameter, one core
constexpr double kElementSeconds = 1e-9;    // making and storing a synthetic element, one core
// A byte of memory that is new to the process. A virtual machine may have to get it from its host,
// which takes up to 2e-9, elsewhere it is a fifth of this.
constexpr double kNewByteSeconds = 1e-9;
constexpr double kOracleFlops = 2e9;      // the fp64 check
constexpr int kCheckedSteps = 12;         // steps that it looks at
constexpr int kCheckedHeads = 8;          // heads of a deep step
constexpr double kCheckedRows = 1 << 19;  // positions of a step, all layers
constexpr double kCeilingPasses = 25;     // over memory, to find the fastest way to read it
// Everything takes so much longer under valgrind: 60 times for a cache in integers, 350 for
// products of weights, as each multiply-add is a call of a function there.
constexpr double kCountingFactor = 300;
constexpr double kCountingStartSeconds = 2;  // to load the program there
constexpr int64_t kProcessBytes = 32 << 20;  // program, libraries, stacks
constexpr int64_t kThreadBytes = 32 << 20;   // a thread's buffers in the BLAS library

struct Cost {
  double dense_flops = 0, attend_flops = 0;
  double weight_bytes = 0, kv_bytes = 0;  // read
  double seconds = 0;

  Cost& operator+=(const Cost& other) {
    dense_flops += other.dense_flops;
    attend_flops += other.attend_flops;
    weight_bytes += other.weight_bytes;
    kv_bytes += other.kv_bytes;
    seconds += other.seconds;
    return *this;
  }
};

double bandwidth_of(const Case& c) { return std::min(kBytes * c.threads, kMaxBytes); }

bool keeps_rows(const Case& c) { return c.engine.layout != LayoutKind::recompute; }

int scored(const Case& c) { return c.score.text.empty() ? 0 : c.score.positions; }

// Rows that a scoring step feeds; what keeps nothing gets the whole text at once.
int scoring_rows(const Case& c) {
  return keeps_rows(c) ? std::min(c.score.chunk, scored(c)) : scored(c);
}

int round_up(int64_t value, int multiple) {
  return static_cast<int>((value + multiple - 1) / multiple * multiple);
}

// The steps of a case: how many rows, from where, at what cost.
class CostModel {
 public:
  explicit CostModel(const Case& c)
      : c_(c),
        q_(double{1} * c.model.heads * c.model.head_dim),
        kv_weights_(2.0 * c.model.d_model * c.model.kv_heads * c.model.head_dim),
        other_weights_(2.0 * c.model.d_model * q_ + (c.model.family == Family::llama ? 3.0 : 2.0) *
                                                        c.model.d_model * c.model.ffn),
        head_weights_(double{1} * c.model.vocab * c.model.d_model),
        row_bytes_(row_bytes(c)) {}

  // One step that feeds rows [first, first + rows) of each of `batch` sequences and wants the last
  // row's output (`wanted` = 1), all (= rows) or none. In the last layer only wanted rows go past
  // their k and v; row p of any other layer sees p + 1 rows, at 4 FLOPs a channel of every query
  // head (2 for the score, 2 for the sum).
  Cost step(int64_t first, int64_t rows, int64_t wanted, int batch) const {
    const double layers = c_.model.layers;
    const double seen = double(rows) * first + double(rows) * (rows + 1) / 2;
    const double seen_last = wanted == rows ? seen : double(wanted) * (first + rows);
    Cost cost;
    if (c_.level == Level::model) {
      const double weights = layers * kv_weights_ + (layers - 1) * other_weights_;
      cost.dense_flops = 2.0 * batch * (rows * weights + wanted * (other_weights_ + head_weights_));
      cost.weight_bytes = (layers * (kv_weights_ + other_weights_) + head_weights_) *
                          weight_bytes(c_.source.weights);
    }
    cost.attend_flops = 4.0 * q_ * batch * ((layers - 1) * seen + seen_last);
    cost.kv_bytes = double(batch) * (first + rows) * row_bytes_;
    cost.seconds = seconds(cost);
    return cost;
  }

  // The steps that bring sequences from `from` to `to` rows, as this engine needs them.
  Cost advance(int from, int to, int64_t wanted, int batch, int chunk) const {
    Cost sum;
    if (!keeps_rows(c_)) return step(0, to, wanted, batch);
    for (int done = from; done < to; done += chunk) {
      const int rows = std::min(chunk, to - done);
      sum += step(done, rows, done + rows == to ? std::min<int64_t>(wanted, rows) : 0, batch);
    }
    return sum;
  }

  // The decode steps of a round.
  Cost decode() const {
    Cost sum;
    for (int i = 1; i < c_.gen_len; ++i) {
      const int length = c_.first_rows() + i;
      sum += advance(length - 1, length, 1, c_.batch, 1);
    }
    return sum;
  }

  Cost prefill() const {
    return advance(0, c_.first_rows(), 1, c_.batch, std::max(1, max_rows_of(c_) / c_.batch));
  }

  // All positions, a cache's in chunks; a row's logits are wanted at every position.
  Cost scoring() const {
    Cost sum;
    const int chunk = std::max(1, scoring_rows(c_));
    for (int done = 0; done < scored(c_); done += chunk) {
      const int rows = std::min(chunk, scored(c_) - done);
      sum += step(done, rows, rows, 1);
    }
    return sum;
  }

  // At attention level nothing computes the context's rows: they are made and stored.
  double fill_seconds() const {
    const double elements = double{1} * c_.model.layers * c_.batch * c_.first_rows() *
                            c_.model.head_dim * 2 * c_.model.kv_heads;
    return elements * kElementSeconds / c_.threads;
  }

  // An untimed run of the round's steps, with some of them checked; without a cache it is enough to
  // run those.
  double verify_seconds(double decode_seconds) const {
    const double steps = std::min(kCheckedSteps, c_.gen_len);
    const bool all = keeps_rows(c_) || c_.tokens == TokenMode::greedy;
    return oracle_seconds(steps) + decode_seconds * (all ? 1 : steps / c_.gen_len);
  }

  double oracle_seconds(double steps) const {
    const double rows = std::min(double{1} * c_.model.layers * c_.committed(),
                                 std::max(kCheckedRows, double{1} * c_.committed()));
    const double heads = std::min(c_.model.heads, kCheckedHeads);
    return steps * c_.batch * 4.0 * heads * c_.model.head_dim * rows / kOracleFlops / c_.threads;
  }

 private:
  // Stored bytes of one position in all layers, codes and scales. Recompute reads the f32 rows that
  // it has just made.
  static double row_bytes(const Case& c) {
    EngineSpec engine;
    if (keeps_rows(c)) {
      engine.k_codec = c.engine.k_codec;
      engine.v_codec = c.engine.v_codec;
    }
    KvSpec spec = kv_spec_of(c);
    spec.max_seqs = 1;
    const int length = std::min(64, spec.max_len);
    return double(predict_footprint(engine, spec, std::vector<int>{length}).live_bytes) / length;
  }

  double seconds(const Cost& cost) const {
    const double bandwidth = bandwidth_of(c_);
    const double dense =
        std::max(cost.dense_flops / (kGemmFlops * c_.threads), cost.weight_bytes / bandwidth);
    const double attend =
        std::max(cost.attend_flops / (kAttendFlops * c_.threads), cost.kv_bytes / bandwidth);
    return dense + attend + c_.model.layers * kLayerSeconds;
  }

  const Case& c_;
  double q_;              // channels of all query heads
  double kv_weights_;     // parameters of wk and wv, a layer
  double other_weights_;  // of wq, wo and the feed-forward matrices, a layer
  double head_weights_;   // of the output matrix
  double row_bytes_;
};

// Matrices as the plan's type, vectors (norms, biases) as f32.
int64_t weight_bytes_of(const Case& c) {
  if (c.level == Level::attention) return 0;
  const ModelConfig& m = c.model;
  const int64_t d = m.d_model, q = int64_t{m.heads} * m.head_dim,
                kv = int64_t{m.kv_heads} * m.head_dim;
  const int64_t positions = m.family == Family::gpt2 ? m.context * d : 0;
  const int64_t ffn = (m.family == Family::llama ? 3 : 2) * d * m.ffn;
  const int64_t matrices = (m.tied_embeddings ? 1 : 2) * m.vocab * d + positions +
                           m.layers * (2 * d * q + 2 * d * kv + ffn);
  const int64_t vectors = parameter_count(m) - matrices;
  return matrices * weight_bytes(c.source.weights) + vectors * 4;
}

// What scoring holds beside the rounds' own: an engine with the text, and the reference's logits,
// which its worker makes and every other one reads.
int64_t scoring_bytes(const Case& c, const KvSpec& spec) {
  if (scored(c) == 0) return 0;
  const Footprint cache = predict_footprint(c.engine, spec, std::vector<int>{scored(c)});
  return std::max(cache.peak_bytes, cache.reserved_bytes) + int64_t{4} * scored(c) * c.model.vocab;
}

// The angles of every position that the engine is made for, sine and cosine.
int64_t rope_bytes(const KvSpec& spec) {
  return spec.rope ? int64_t{4} * spec.max_len * spec.rope->dims : 0;
}

// Activations of the largest step, and the logits of the rows that are asked for.
int64_t activation_bytes(const Case& c) {
  const ModelConfig& m = c.model;
  const int64_t rows = max_rows_of(c), q = int64_t{m.heads} * m.head_dim,
                kv = int64_t{c.repeat_kv ? m.heads : m.kv_heads} * m.head_dim;
  if (c.level == Level::attention) {
    // The rows of the steps in all layers, and of a step that fills the context in one.
    const int64_t staged = int64_t{m.layers} * c.batch *
                           (keeps_rows(c) ? std::max(c.gen_len, kShortRows) : c.committed());
    return (staged * (q + 2 * kv) + rows * (q + 2 * kv)) * 4;
  }
  const int64_t logits = std::max<int64_t>(c.batch, scoring_rows(c)) * m.vocab;
  return (rows * (3 * int64_t{m.d_model} + 2 * q + 2 * kv + 2 * int64_t{m.ffn}) + logits) * 4;
}

// A block of one layer, where blocks lie in an order that memory does not like; else 0.
int64_t shuffled_block_bytes(const Case& c, const KvSpec& spec) {
  if (c.engine.layout != LayoutKind::paged || c.pool_order != PoolOrder::shuffled) return 0;
  const Footprint block = predict_footprint(c.engine, spec, std::vector<int>{1});
  return (block.reserved_bytes - block.table_bytes) / spec.layers;
}

}  // namespace

int max_rows_of(const Case& c) {
  int64_t rows = 0;  // of one sequence
  if (keeps_rows(c)) {
    rows = std::clamp(c.first_rows(), 1, std::max(1, kChunkRows / c.batch));
  } else {
    rows = std::max(c.committed(), std::min(kShortRows, c.max_seq_len));
  }
  return round_up(std::max<int64_t>(rows * c.batch, scoring_rows(c)), c.batch);
}

KvSpec kv_spec_of(const Case& c) {
  const int max_len = std::max(c.max_seq_len, scored(c));
  return kv_spec(c.model, c.batch, max_len, max_rows_of(c), c.repeat_kv);
}

Prediction predict(const Case& c, int settle_steps) {
  const CostModel model(c);
  const Cost decode = model.decode(), prefill = model.prefill(), scoring = model.scoring();
  const int settle = std::min(settle_steps, c.gen_len - 1);
  const int steps = std::max(1, c.gen_len - 1);
  const Cost mean_of = c.gen_len > 1 ? decode : prefill;
  const KvSpec spec = kv_spec_of(c);
  const Footprint cache =
      predict_footprint(c.engine, spec, std::vector<int>(c.batch, c.committed()));

  Prediction p;
  p.kv_live_bytes = cache.live_bytes;
  p.kv_bytes = cache.reserved_bytes;
  p.weight_bytes = weight_bytes_of(c);
  p.kv_bytes_read_per_step = static_cast<int64_t>(mean_of.kv_bytes / steps);
  p.weight_bytes_read_per_step = static_cast<int64_t>(mean_of.weight_bytes / steps);
  p.attend_flops_per_step = mean_of.attend_flops / steps;
  p.flops_per_step = (mean_of.dense_flops + mean_of.attend_flops) / steps;
  if (keeps_rows(c) && c.gen_len > 1 && !c.counted()) {
    p.ceiling_bytes =
        std::min(p.kv_bytes_read_per_step + p.weight_bytes_read_per_step, kMaxCeilingBytes);
    p.ceiling_page_bytes = shuffled_block_bytes(c, spec);
  }
  const int64_t ceilings_bytes = p.ceiling_bytes * (p.ceiling_page_bytes > 0 ? 2 : 1);
  p.total_bytes = std::max(cache.peak_bytes, cache.reserved_bytes) + p.weight_bytes +
                  activation_bytes(c) + scoring_bytes(c, spec) + rope_bytes(spec) + ceilings_bytes +
                  kProcessBytes + c.threads * kThreadBytes;

  const double settle_s = settle * decode.seconds / steps;
  const double ceiling_s = static_cast<double>(ceilings_bytes) / bandwidth_of(c);  // a pass
  const bool whole = c.level == Level::model;  // the attention level's context is filled once
  p.round_s = decode.seconds + settle_s + (whole ? prefill.seconds : 0) + ceiling_s;
  const double start_s =
      whole ? parameter_count(c.model) * kParameterSeconds / c.threads + prefill.seconds
            : model.fill_seconds();
  p.once_s = static_cast<double>(p.kv_live_bytes + ceilings_bytes) * kNewByteSeconds + start_s +
             model.verify_seconds(decode.seconds) + scoring.seconds + kCeilingPasses * ceiling_s;
  if (c.counted()) {
    p.round_s *= kCountingFactor;
    p.once_s = kCountingFactor * p.once_s + kCountingStartSeconds;
  }
  const int64_t first = c.first_rows(), last = c.committed();
  if (keeps_rows(c)) {
    p.positions_computed = whole ? last : last - first;
  } else {
    const int64_t from = whole ? first : first + 1;  // Σ n for n in [from, last]
    p.positions_computed = (last * (last + 1) - from * (from - 1)) / 2;
  }
  return p;
}

}  // namespace kvmark
