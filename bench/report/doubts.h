// Which rows deserve doubt, and why.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"

namespace kvmark {

// The reasons of env.unstable, told apart: those that all rows with figures share (mostly the
// machine's state) are said once, those of single rows mark these rows.
class Doubts {
 public:
  explicit Doubts(Records records);

  // The row's reasons that not all others have too; none where it has no figures.
  std::vector<std::string> own_of(const nlohmann::ordered_json& record) const;
  // kDoubtMark where the row has a reason of its own, else "".
  std::string mark_of(const nlohmann::ordered_json& record) const;

  // What stands below the tables; nothing where there are no reasons.
  std::vector<std::string> lines() const;
  // The same without marks, a line for each reason: "steal: 2 of 20 rows".
  std::vector<std::string> plain_lines() const;

 private:
  struct Reason {
    std::string words;
    size_t rows = 0;
  };
  bool is_shared(const Reason& reason) const { return reason.rows == rows_; }
  std::string outlier_line() const;

  size_t rows_ = 0, marked_ = 0, with_outliers_ = 0, outlier_rounds_ = 0;
  std::vector<Reason> reasons_;  // in the order in which they come up
};

}  // namespace kvmark
