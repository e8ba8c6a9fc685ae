// How `kvmark ab` decides whether a row became slower: which pairs of visits to take, and what they
// say. Without processes and clocks, so that simulations, resampling and real runs share it.
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace kvmark {

// Changes are parts: 0.05 is 5 % slower. Simulated with a noise of 1–2 % a visit these reach both
// promises of docs/trust.md; procedure_test.cc holds them to it.
struct ProcedureOptions {
  int screen_pairs = 8;        // of every row
  double keep = 0.015;         // a smaller change after them is not worth more pairs
  int confirm_pairs = 24;      // fresh ones: those that made a row suspect would argue in a circle
  int further_pairs = 8;       // at a time, until the interval is narrow ...
  double half_width = 0.0125;  // ... as this, with 90 %
  int most_pairs = 48;
  double slower = 0.025;         // the estimate of a slower row reaches this ...
  double surely_slower = 0.005;  // ... and its lower bound exceeds this
  double risk = 0.005;           // of that bound, shared by all rows that were kept
  double undecided = 0.05;       // a row that isn't slower but may be by more than this
};

// Whether a row is slower: `faster` is the mirror of `slower` and gates nothing.
enum class Finding { same, slower, faster, undecided, dropped };

struct RowDecision {
  Finding finding = Finding::same;
  bool confirmed = false;                         // decided by the pairs of the confirmation alone
  int pairs = 0;                                  // that decided
  double change = 0;                              // new/base − 1, estimated
  std::optional<std::array<double, 2>> interval;  // of `change`, 90 %
  std::optional<double> lower_bound;              // that the decision was made by, of `change`
};

class Procedure {
 public:
  explicit Procedure(int rows, const ProcedureOptions& options = {});

  // The row that the next pair is due for, rows in turn; nothing: all is decided.
  std::optional<int> next() const;
  // A pair of a row: log(time of new) − log(time of base).
  void add(int row, double difference);
  // The row cannot be measured any more; its finding is `dropped`.
  void drop(int row);

  RowDecision decision(int row) const;

  bool confirming() const { return confirming_; }
  int kept() const;  // rows in the confirmation
  int pairs_taken() const;
  // Pairs that are due for sure; further ones may follow.
  int pairs_due() const;

 private:
  struct Row {
    std::vector<double> screened, confirmed;
    int due = 0;  // pairs of this stage that it still needs
    bool kept = false, dropped = false;
  };
  int further_pairs(const Row& row) const;
  void end_screening();

  const ProcedureOptions options_;
  std::vector<Row> rows_;
  bool confirming_ = false;
};

}  // namespace kvmark
