// What a stored format does to a model's predictions on real text.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/run/workload.h"

namespace kvmark {

// Over the scored positions, this engine (p) against the uncompressed reference (r): KL divergence
// Σ r·ln(r/p) in nats, share of equal first choices, mean −ln p of the text's next token.
struct Score {
  int positions = 0;
  double kld_mean = 0, kld_p99 = 0, kld_max = 0;
  double top1_agreement = 0;
  double nll = 0, nll_reference = 0;

  // Sets the keys of the record's accuracy.loss.
  void add_to(nlohmann::ordered_json& loss) const;
};

// Logits of the text through the workload's own cache, in chunks of score.chunk rows, each row read
// from the cache as stored: (score.positions, vocab).
std::vector<float> score_logits(Workload& workload);

// The same, compared position by position with the reference's logits.
Score score(Workload& workload, const std::vector<float>& reference);

// Of one position: KL divergence and the two −ln of `next`.
struct PositionScore {
  double kld, nll, nll_reference;
  bool same_top1;
};
PositionScore score_position(const float* logits, const float* reference, int vocab, int next);

}  // namespace kvmark
