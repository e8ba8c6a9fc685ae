// How often the procedure cries wolf and how often it finds a slowdown, on the noise of a machine
// that was recorded: pairs of visits of the same source.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "bench/gate/procedure.h"

namespace kvmark {

// rounds × rows: log(time of new) − log(time of base) of each row, rounds in the order of time.
using RecordedRounds = std::vector<std::vector<double>>;

// The noise of one visit as the pairs of a row show it: 1.4826 · MAD of the differences over √2, so
// that a few disturbed visits do not make it look worse than what the procedure meets.
double visit_sigma(const RecordedRounds& rounds, int row);

// Runs of the procedure on rounds that are drawn from the recorded ones, in blocks of
// kBlockRounds with replacement: rows that were disturbed together stay together, and so do
// neighbours in time.
class Resampler {
 public:
  static constexpr int kBlockRounds = 4;
  // Fewer would be the same few blocks again and again.
  static constexpr int kFewestRounds = 20;

  // At least kFewestRounds rounds, all of as many rows, at least one.
  Resampler(const RecordedRounds& rounds, const ProcedureOptions& options, uint64_t seed);

  // The rows found slower in `runs` runs without a change: how many runs had any.
  int red_runs(int runs);
  // How often a row that is slower by `slowdown` is found among the others, rows in turn.
  int found(double slowdown, int runs);

 private:
  std::vector<bool> slower(int slowed, double slowdown);

  const RecordedRounds& rounds_;
  const ProcedureOptions options_;
  std::mt19937_64 random_;
};

}  // namespace kvmark
