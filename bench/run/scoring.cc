#include "bench/run/scoring.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "engines/core/check.h"

namespace kvmark {
namespace {

// ln Σ e^x, by the largest value.
double log_sum_exp(const float* x, int n) {
  const double largest = *std::max_element(x, x + n);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

// Feeds the text and hands each chunk's logits (first position, rows) to `use`.
void feed_text(Workload& workload, const std::function<void(int, Tensor)>& use) {
  const Case& c = workload.spec();
  const std::unique_ptr<KvEngine> engine = workload.make_scoring_engine();
  const auto tokens = std::span(workload.model()->score_tokens());
  const bool keeps_rows = c.engine.layout != LayoutKind::recompute;
  const int chunk = keeps_rows ? c.score.chunk : c.score.positions;
  const SeqId seq = engine->open();
  for (int first = 0; first < c.score.positions; first += chunk) {
    const int rows = std::min(chunk, c.score.positions - first);
    const Piece piece{seq, first, rows};
    use(first, workload.model()->forward(*engine, {&piece, 1}, tokens.subspan(first, rows),
                                         Outputs::all, nullptr));
  }
}

}  // namespace

PositionScore score_position(const float* logits, const float* reference, int vocab, int next) {
  const double norm = log_sum_exp(logits, vocab), ref_norm = log_sum_exp(reference, vocab);
  double kld = 0;
  for (int i = 0; i < vocab; ++i) {
    const double ref_log = reference[i] - ref_norm;
    kld += std::exp(ref_log) * (ref_log - (logits[i] - norm));
  }
  const auto top = [vocab](const float* x) { return std::max_element(x, x + vocab) - x; };
  // Rounding can take a divergence of nearly nothing below zero.
  return {std::max(kld, 0.0), norm - logits[next], ref_norm - reference[next],
          top(logits) == top(reference)};
}

std::vector<float> score_logits(Workload& workload) {
  const Case& c = workload.spec();
  std::vector<float> all(size_t(c.score.positions) * c.model.vocab);
  feed_text(workload, [&](int first, Tensor logits) {
    std::copy(logits.data, logits.data + logits.size(), &all[size_t(first) * c.model.vocab]);
  });
  return all;
}

Score score(Workload& workload, const std::vector<float>& reference) {
  const Case& c = workload.spec();
  const int n = c.score.positions, vocab = c.model.vocab;
  check(reference.size() == size_t(n) * vocab, "the reference has {} logits, not {} x {}",
        reference.size(), n, vocab);
  std::vector<PositionScore> scores(n);
  feed_text(workload, [&](int first, Tensor logits) {
    workload.pool().run(logits.rows, [&](int row, int) {
      const int position = first + row;
      scores[position] = score_position(logits.row(row), &reference[size_t(position) * vocab],
                                        vocab, workload.model()->score_tokens()[position + 1]);
    });
  });

  Score result{.positions = n};
  std::vector<double> klds;
  int same_top1 = 0;
  for (const PositionScore& s : scores) {
    klds.push_back(s.kld);
    result.kld_mean += s.kld / n;
    result.nll += s.nll / n;
    result.nll_reference += s.nll_reference / n;
    same_top1 += s.same_top1;
  }
  std::sort(klds.begin(), klds.end());
  result.top1_agreement = static_cast<double>(same_top1) / n;
  result.kld_max = klds.back();
  result.kld_p99 = klds[static_cast<size_t>(std::ceil(0.99 * n)) - 1];
  return result;
}

void Score::add_to(nlohmann::ordered_json& loss) const {
  loss["kld_mean"] = kld_mean;
  loss["kld_p99"] = kld_p99;
  loss["kld_max"] = kld_max;
  loss["top1_agreement"] = top1_agreement;
  loss["nll"] = nll;
  loss["nll_reference"] = nll_reference;
  loss["positions"] = positions;
}

}  // namespace kvmark
