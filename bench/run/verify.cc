#include "bench/run/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "bench/run/scoring.h"
#include "engines/attention/attention.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr int kShortSteps = 33;      // past a block of 32
constexpr int kAllHeadsUpTo = 2048;  // positions; farther out some heads stand for all
constexpr int kHeadsFarOut = 8;
constexpr int kLayerPositions = 1 << 19;  // that a step reads back of a sequence, all layers

double square(double x) { return x * x; }

// Both watch the same steps.
class Both : public StepObserver {
 public:
  Both(StepObserver& a, StepObserver& b) : a_(a), b_(b) {}
  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override {
    a_.attended(layer, outputs, pieces, q, k, v, out);
    b_.attended(layer, outputs, pieces, q, k, v, out);
  }

 private:
  StepObserver& a_;
  StepObserver& b_;
};

// sqrt(Σ (x − ref)² / Σ ref²).
double relative_rms(const std::vector<float>& x, const std::vector<float>& ref) {
  check(x.size() == ref.size(), "{} outputs against {} of the reference", x.size(), ref.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += square(double{x[i]} - ref[i]);
    norm += square(ref[i]);
  }
  return norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

// The first, a middle and the last row that a piece fed.
std::vector<int> rows_to_check(int rows) {
  std::vector<int> picked = {0, rows / 2, rows - 1};
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

// Largest |stored − fed| of one head row, in units of what its format may lose. A row with values
// beyond the format's range is a loss that the format owns up to and counts, not a wrong row.
double row_error(const float* stored, const double* fed, int dim, const RowBound& bound) {
  double worst = 0, largest = 0;
  for (int d = 0; d < dim; ++d) {
    const double error = std::abs(stored[d] - fed[d]);
    if (!(error <= worst)) worst = error;  // also where it is NaN
    largest = std::max(largest, std::abs(fed[d]));
  }
  if (std::isnan(worst)) return INFINITY;
  return worst == 0 || largest > bound.clamp_at ? 0 : worst / bound.of(largest);
}

}  // namespace

bool checks_outputs(int layer, int layers, int visible) {
  const int most = std::max(1, kLayerPositions / visible);
  const int every = (layers + most - 1) / most;
  return (layer + visible) % every == 0;
}

Oracle::Oracle(Workload& workload) : workload_(workload), spec_(workload.engine().spec()) {}

bool Oracle::passed() const {
  return rows_checked_ > 0 && rel_rms_ <= workload_.engine().tolerance() && stored_error_ <= 1;
}

nlohmann::ordered_json Oracle::to_json() const {
  return {{"rel_rms", rel_rms_},
          {"tolerance", workload_.engine().tolerance()},
          {"stored_error", stored_error_},
          {"rows_checked", rows_checked_},
          {"passed", passed()}};
}

void Oracle::attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                      Tensor v, Tensor out) {
  int fed = 0, out_row = 0;  // where this piece begins in the packed rows
  for (const Piece& piece : pieces) {
    const int visible = piece.first + piece.rows;
    const bool whole = outputs != Outputs::none && checks_outputs(layer, spec_.layers, visible);
    if (whole) read_rows(layer, piece, 0, visible);
    for (int i : rows_to_check(piece.rows)) {
      if (!whole) read_rows(layer, piece, piece.first + i, 1);
      check_stored(piece.first + i, k.row(fed + i), v.row(fed + i));
      if (!whole) continue;
      const bool last = i + 1 == piece.rows;
      if (outputs == Outputs::all) {
        check_output(q.row(fed + i), piece.first + i, out.row(out_row + i));
      } else if (last) {
        check_output(q.row(fed + i), piece.first + i, out.row(out_row));
      }
    }
    fed += piece.rows;
    out_row += outputs == Outputs::all ? piece.rows : 1;
  }
}

void Oracle::read_rows(int layer, const Piece& piece, int first, int rows) {
  const int k_cols = spec_.kv_heads * spec_.k_dim, v_cols = spec_.kv_heads * spec_.v_dim;
  first_ = first;
  k_.resize(size_t(rows) * k_cols);
  v_.resize(size_t(rows) * v_cols);
  workload_.engine().read(piece.seq, layer, first, rows, {k_.data(), rows, k_cols},
                          {v_.data(), rows, v_cols});
}

void Oracle::check_stored(int position, const float* k, const float* v) {
  const StoredBound bound = workload_.engine().stored_bound();
  std::vector<double> fed(std::max(spec_.k_dim, spec_.v_dim));
  for (int h = 0; h < spec_.kv_heads; ++h) {
    const size_t at = size_t(position - first_) * spec_.kv_heads + h;
    std::copy_n(k + h * spec_.k_dim, spec_.k_dim, fed.begin());
    if (spec_.rope) rope_reference(*spec_.rope, position, spec_.k_dim, fed.data());
    const double k_error = row_error(&k_[at * spec_.k_dim], fed.data(), spec_.k_dim, bound.k);
    std::copy_n(v + h * spec_.v_dim, spec_.v_dim, fed.begin());
    const double v_error = row_error(&v_[at * spec_.v_dim], fed.data(), spec_.v_dim, bound.v);
    stored_error_ = std::max({stored_error_, k_error, v_error});
  }
}

// All heads near the start; farther out one for each of some KV heads, another one each time.
std::vector<int> Oracle::heads_to_check(int visible) const {
  std::vector<int> heads;
  const int count = visible <= kAllHeadsUpTo ? spec_.heads : std::min(spec_.heads, kHeadsFarOut);
  for (int i = 0; i < count; ++i) {
    const int spread = static_cast<int>(int64_t{i} * spec_.heads / count);
    heads.push_back(count == spec_.heads ? i : (spread + visible) % spec_.heads);
  }
  return heads;
}

void Oracle::check_output(const float* q, int position, const float* out) {
  const int visible = position + 1;
  const std::vector<int> heads = heads_to_check(visible);
  std::vector<double> error(heads.size()), norm(heads.size());
  workload_.pool().run(static_cast<int>(heads.size()), [&](int i, int) {
    const int h = heads[i], kv_head = h / (spec_.heads / spec_.kv_heads);
    std::vector<double> query(q + h * spec_.k_dim, q + (h + 1) * spec_.k_dim), want(spec_.v_dim);
    if (spec_.rope) rope_reference(*spec_.rope, position, spec_.k_dim, query.data());
    attend_reference(query.data(), spec_.k_dim, k_.data() + kv_head * spec_.k_dim,
                     spec_.kv_heads * spec_.k_dim, v_.data() + kv_head * spec_.v_dim,
                     spec_.kv_heads * spec_.v_dim, spec_.v_dim, visible, want.data());
    for (int d = 0; d < spec_.v_dim; ++d) {
      error[i] += square(double{out[h * spec_.v_dim + d]} - want[d]);
      norm[i] += square(want[d]);
    }
  });
  double error_sum = 0, norm_sum = 0;
  for (size_t i = 0; i < heads.size(); ++i) error_sum += error[i], norm_sum += norm[i];
  const double relative = norm_sum > 0 ? std::sqrt(error_sum / norm_sum) : std::sqrt(error_sum);
  // A NaN must not slip through a comparison.
  rel_rms_ = std::isfinite(relative) ? std::max(rel_rms_, relative) : INFINITY;
  ++rows_checked_;
}

void OutputCollector::attended(int, Outputs outputs, std::span<const Piece> pieces, Tensor, Tensor,
                               Tensor, Tensor out) {
  if (outputs == Outputs::none) return;
  int row = -1;
  for (const Piece& piece : pieces) {
    row += outputs == Outputs::all ? piece.rows : 1;
    if (piece.first + piece.rows < from_) continue;
    values_.insert(values_.end(), out.row(row), out.row(row) + out.cols);
  }
}

void Reference::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  for (const std::vector<float>* part : {&outputs, &logits}) {
    const uint64_t count = part->size();
    file.write(reinterpret_cast<const char*>(&count), sizeof count);
    file.write(reinterpret_cast<const char*>(part->data()), count * sizeof(float));
  }
  file.close();
  if (!file) throw RuntimeError(fmt::format("{}: the reference cannot be written", path));
}

Reference Reference::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Reference reference;
  for (std::vector<float>* part : {&reference.outputs, &reference.logits}) {
    uint64_t count = 0;
    file.read(reinterpret_cast<char*>(&count), sizeof count);
    if (!file) throw RuntimeError(fmt::format("{}: the reference cannot be read", path));
    part->resize(count);
    file.read(reinterpret_cast<char*>(part->data()), count * sizeof(float));
  }
  if (!file) throw RuntimeError(fmt::format("{}: the reference is cut short", path));
  return reference;
}

Reference make_reference(Workload& workload) {
  Oracle oracle(workload);
  OutputCollector collector(workload.spec().first_rows());
  Both both(oracle, collector);
  workload.rehearse(&both);
  if (oracle.rows_checked() > 0 && !oracle.passed()) {
    throw RuntimeError(fmt::format("the reference itself is wrong: rel_rms {:.3g}, stored {:.3g}",
                                   oracle.rel_rms(), oracle.stored_error()));
  }
  Reference reference{.outputs = collector.values(), .logits = {}};
  if (workload.spec().score.positions > 0) reference.logits = score_logits(workload);
  return reference;
}

namespace {

// What a case computed under the eyes of the oracle.
struct Seen {
  std::string digest;
  std::vector<float> outputs;
  nlohmann::ordered_json correct;
};

Seen run_watched(Workload& workload) {
  Oracle oracle(workload);
  workload.run_short(std::min(kShortSteps, workload.engine().spec().max_len), oracle);
  OutputCollector collector(workload.spec().first_rows());
  Both both(oracle, collector);
  const std::string digest = workload.rehearse(&both);
  return {digest, collector.values(), oracle.to_json()};
}

// The protocol's `verified`.
nlohmann::ordered_json verified(const Case& c, Seen seen, const Reference* reference,
                                const std::optional<Score>& scored) {
  nlohmann::ordered_json loss = {
      {"reference", "full/f32"}, {"attend_rel_rms", nullptr}, {"kld_mean", nullptr},
      {"kld_p99", nullptr},      {"kld_max", nullptr},        {"top1_agreement", nullptr},
      {"nll", nullptr},          {"nll_reference", nullptr},  {"positions", nullptr}};
  // Under greedy decoding the engines may go different ways, so that their outputs don't compare.
  if (reference && c.tokens == TokenMode::forced && !reference->outputs.empty()) {
    loss["attend_rel_rms"] = relative_rms(seen.outputs, reference->outputs);
  }
  if (scored) scored->add_to(loss);
  return {{"digest", seen.digest}, {"correct", seen.correct}, {"loss", std::move(loss)}};
}

}  // namespace

nlohmann::ordered_json verify(Workload& workload, const Reference* reference) {
  const Case& c = workload.spec();
  std::optional<Score> scored;
  if (reference && c.score.positions > 0) scored = score(workload, reference->logits);
  return verified(c, run_watched(workload), reference, scored);
}

nlohmann::ordered_json verify_reference(Workload& workload, Reference& made) {
  const Case& c = workload.spec();
  check(c.score.positions == 0, "the reference of a scored text is made apart");
  Seen seen = run_watched(workload);
  made = {.outputs = seen.outputs, .logits = {}};
  return verified(c, std::move(seen), &made, {});
}

}  // namespace kvmark
