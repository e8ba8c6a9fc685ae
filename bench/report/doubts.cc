#include "bench/report/doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {

using Json = nlohmann::ordered_json;

Doubts::Doubts(Records records) {
  for (const Json& record : records) {
    if (!has_figures(record)) continue;
    ++rows_;
    for (const Json& words : value_at(record, "env.unstable")) {
      const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                      [&](const Reason& r) { return r.words == text_of(words); });
      if (known == reasons_.end()) {
        reasons_.push_back({text_of(words), 1});
      } else {
        ++known->rows;
      }
    }
    const size_t outliers = value_at(record, "samples.outlier_rounds").size();
    outlier_rounds_ += outliers;
    with_outliers_ += outliers > 0;
  }
  marked_ = std::count_if(records.begin(), records.end(),
                          [&](const Json& record) { return !mark_of(record).empty(); });
}

std::vector<std::string> Doubts::own_of(const Json& record) const {
  std::vector<std::string> own;
  if (!has_figures(record)) return own;
  for (const Json& words : value_at(record, "env.unstable")) {
    const auto reason = std::find_if(reasons_.begin(), reasons_.end(),
                                     [&](const Reason& r) { return r.words == text_of(words); });
    if (!is_shared(*reason)) own.push_back(reason->words);
  }
  return own;
}

std::string Doubts::mark_of(const Json& record) const {
  return own_of(record).empty() ? "" : std::string(kDoubtMark);
}

std::string Doubts::outlier_line() const {
  return fmt::format("outlier rounds: {}, in {} of {} rows; they count in every figure",
                     outlier_rounds_, with_outliers_, rows_);
}

std::vector<std::string> Doubts::lines() const {
  std::vector<std::string> of_all, of_some, lines;
  for (const Reason& reason : reasons_) {
    if (is_shared(reason)) {
      of_all.push_back(reason.words);
    } else {
      of_some.push_back(fmt::format("{} ({})", reason.words, reason.rows));
    }
  }
  if (!of_all.empty()) {
    lines.push_back(fmt::format("noise, in every row: {}", fmt::join(of_all, "; ")));
  }
  if (!of_some.empty()) {
    lines.push_back(fmt::format("{}: noise in {} of {} rows, figures in their `probes`: {}",
                                kDoubtMark, marked_, rows_, fmt::join(of_some, "; ")));
  }
  if (outlier_rounds_ > 0) lines.push_back(outlier_line());
  return lines;
}

std::vector<std::string> Doubts::plain_lines() const {
  std::vector<std::string> lines;
  for (const Reason& reason : reasons_) {
    lines.push_back(is_shared(reason)
                        ? fmt::format("{}: all rows", reason.words)
                        : fmt::format("{}: {} of {} rows", reason.words, reason.rows, rows_));
  }
  if (outlier_rounds_ > 0) lines.push_back(outlier_line());
  return lines;
}

}  // namespace kvmark
