#include "bench/gate/resampling.h"

#include <algorithm>
#include <cmath>

#include "bench/record/stats.h"
#include "engines/core/check.h"

namespace kvmark {
double visit_sigma(const RecordedRounds& rounds, int row) {
  std::vector<double> differences;
  for (const std::vector<double>& round : rounds) differences.push_back(round.at(row));
  return kNormalMad * *summarize(differences).mad / std::sqrt(2.0);
}

Resampler::Resampler(const RecordedRounds& rounds, const ProcedureOptions& options, uint64_t seed)
    : rounds_(rounds), options_(options), random_(seed) {
  check(rounds.size() >= kFewestRounds && !rounds[0].empty(), "{} rounds to draw from",
        rounds.size());
}

// One run, with row `slowed` (−1: none) slower; which rows were found to be.
std::vector<bool> Resampler::slower(int slowed, double slowdown) {
  std::uniform_int_distribution<size_t> start(0, rounds_.size() - kBlockRounds);
  std::vector<size_t> drawn;
  while (static_cast<int>(drawn.size()) < options_.screen_pairs + options_.most_pairs) {
    const size_t block = start(random_);
    for (int i = 0; i < kBlockRounds; ++i) drawn.push_back(block + i);
  }
  const int rows = static_cast<int>(rounds_[0].size());
  Procedure procedure(rows, options_);
  std::vector<int> taken(rows);
  while (const auto row = procedure.next()) {
    const double shift = *row == slowed ? std::log1p(slowdown) : 0;
    procedure.add(*row, rounds_[drawn[taken[*row]++]][*row] + shift);
  }
  std::vector<bool> found;
  for (int row = 0; row < rows; ++row) {
    found.push_back(procedure.decision(row).finding == Finding::slower);
  }
  return found;
}

int Resampler::red_runs(int runs) {
  int red = 0;
  for (int run = 0; run < runs; ++run) {
    const std::vector<bool> found = slower(-1, 0);
    red += std::find(found.begin(), found.end(), true) != found.end();
  }
  return red;
}

int Resampler::found(double slowdown, int runs) {
  int found = 0;
  for (int run = 0; run < runs; ++run) {
    const int row = run % static_cast<int>(rounds_[0].size());
    found += slower(row, slowdown)[row];
  }
  return found;
}

}  // namespace kvmark
