// The gated rows of a comparison: their pairs of visits, and what the procedure makes of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/gate/procedure.h"
#include "bench/gate/visit.h"

namespace kvmark {

// A row to be timed, with what each build computed of it when it was verified.
struct TimedRow {
  Case spec;
  std::string base_digest, digest;
};

// Throws SideFailed where a visit computed something else than was verified.
void hold_to_verified(const TimedRow& row, const VisitPairs::Pair& pair);

class TimedRows {
 public:
  TimedRows(std::vector<TimedRow> rows, const Binary& base, const Binary& now,
            const ProcedureOptions& procedure, const VisitOptions& visit, uint64_t seed);

  // Takes pairs until all is decided, `after_pair` after each. A row whose worker dies or computes
  // something else than before is dropped. Throws Interrupted; what was taken stays.
  void take_all(const std::function<void()>& after_pair);

  const Procedure& procedure() const { return procedure_; }
  const VisitPairs& visits() const { return visits_; }

  // What is known of a row: the gated metric and p99, and whose fault it was where it was dropped.
  // Dropped because of the base it is undecided.
  void complete(int row, CaseComparison& comparison) const;

  // Every row was dropped: nothing is known of any time.
  bool all_dropped() const;

  // Everything, so that a decision can be checked: the rows with their pairs and decisions.
  nlohmann::ordered_json to_json() const;

 private:
  struct Fault {
    bool of_base = false;
    std::string status, reason;  // failed or invalid
  };
  struct Row {
    TimedRow row;
    std::vector<VisitPairs::Pair> pairs;
    std::vector<bool> confirming;  // of each pair
    std::optional<Fault> fault;
  };
  void take(int index);
  // Over the visits of one build; nothing where one of them lacks the figure.
  template <typename Figure>
  static std::optional<double> median_of(const Row& row, bool base, Figure Visit::*figure);

  std::vector<Row> rows_;
  const ProcedureOptions options_;
  Procedure procedure_;
  VisitPairs visits_;
};

// "slower", "same", ….
std::string_view finding_word(Finding finding);

}  // namespace kvmark
