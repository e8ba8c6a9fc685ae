#include "bench/gate/procedure.h"

#include <algorithm>
#include <cmath>

#include "bench/gate/rank_statistics.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr double kIntervalConfidence = 0.9;

std::optional<std::array<double, 2>> change_interval(const std::vector<double>& differences) {
  const auto interval = centre_interval(differences, kIntervalConfidence);
  if (!interval) return {};
  return std::array{std::expm1((*interval)[0]), std::expm1((*interval)[1])};
}

double change(const std::vector<double>& differences) {
  return std::expm1(hodges_lehmann(differences));
}

}  // namespace

Procedure::Procedure(int rows, const ProcedureOptions& options) : options_(options), rows_(rows) {
  for (Row& row : rows_) row.due = options_.screen_pairs;
}

// The row with the fewest pairs of the stage, so that rows take turns.
std::optional<int> Procedure::next() const {
  std::optional<int> chosen;
  size_t fewest = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].due == 0) continue;
    const size_t taken = confirming_ ? rows_[i].confirmed.size() : rows_[i].screened.size();
    if (chosen && taken >= fewest) continue;
    chosen = static_cast<int>(i);
    fewest = taken;
  }
  return chosen;
}

void Procedure::add(int row, double difference) {
  Row& r = rows_.at(row);
  check(r.due > 0, "a pair that row {} does not need", row);
  (confirming_ ? r.confirmed : r.screened).push_back(difference);
  if (--r.due == 0 && confirming_) r.due = further_pairs(r);
  if (!confirming_ && !next()) end_screening();
}

void Procedure::drop(int row) {
  rows_.at(row).dropped = true;
  rows_[row].due = 0;
  if (!confirming_ && !next()) end_screening();
}

// After the confirmation's pairs: none where the interval is narrow, or there are enough.
int Procedure::further_pairs(const Row& row) const {
  const int taken = static_cast<int>(row.confirmed.size());
  if (taken + options_.further_pairs > options_.most_pairs) return 0;
  const auto interval = change_interval(row.confirmed);
  const bool narrow = interval && (*interval)[1] - (*interval)[0] <= 2 * options_.half_width;
  return narrow ? 0 : options_.further_pairs;
}

void Procedure::end_screening() {
  confirming_ = true;
  for (Row& row : rows_) {
    row.kept = !row.dropped && change(row.screened) >= options_.keep;
    if (row.kept) row.due = options_.confirm_pairs;
  }
}

RowDecision Procedure::decision(int row) const {
  const Row& r = rows_.at(row);
  RowDecision decision;
  decision.confirmed = confirming_ && r.kept && !r.confirmed.empty();
  const std::vector<double>& differences = decision.confirmed ? r.confirmed : r.screened;
  decision.pairs = static_cast<int>(differences.size());
  if (!differences.empty()) decision.change = change(differences);
  decision.interval = change_interval(differences);
  if (r.dropped || next()) {
    decision.finding = r.dropped ? Finding::dropped : Finding::undecided;
    return decision;
  }
  const double confidence = 1 - options_.risk / std::max(1, kept());
  if (decision.confirmed) {
    if (const auto bound = lower_bound(differences, confidence)) {
      decision.lower_bound = std::expm1(*bound);
    }
  }
  const auto& interval = decision.interval;
  if (decision.change >= options_.slower && decision.lower_bound &&
      *decision.lower_bound > options_.surely_slower) {
    decision.finding = Finding::slower;
  } else if (!interval || (*interval)[1] > options_.undecided) {
    decision.finding = Finding::undecided;
  } else if (decision.change <= -options_.slower && (*interval)[1] < -options_.surely_slower) {
    decision.finding = Finding::faster;
  }
  return decision;
}

int Procedure::kept() const {
  if (!confirming_) return 0;
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.kept; }));
}

int Procedure::pairs_taken() const {
  size_t pairs = 0;
  for (const Row& row : rows_) pairs += row.screened.size() + row.confirmed.size();
  return static_cast<int>(pairs);
}

int Procedure::pairs_due() const {
  int pairs = 0;
  for (const Row& row : rows_) pairs += row.due;
  return pairs;
}

}  // namespace kvmark
