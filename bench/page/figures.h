// The figures of records that a page shows.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/metrics.h"
#include "bench/report/report.h"

namespace kvmark {

// What a cache loses, the best to judge by first: of text, else of random data.
inline constexpr std::array<std::string_view, 3> kLosses = {
    "accuracy.loss.kld_mean", "accuracy.loss.top1_agreement", "accuracy.loss.attend_rel_rms"};
// An attention error that the order of f32 sums alone may make.
inline constexpr double kSameAsF32 = 1e-5;

// A number of the record, with where its interval and count stand.
struct Figure {
  const RecordField* field = nullptr;
  std::string path, title;
  std::string interval, n;  // paths; "": it has none

  // Has the row this figure to show? The attention alone gives no tokens, so no rates of them.
  bool is_of(const nlohmann::ordered_json& row) const;
  // Would anybody choose a cache by it? By what decides in a comparison, and by the other speeds
  // and losses: not by the phases of a step, by probes or what only checks the measurement.
  bool is_choice() const;
};

// Those of the metrics table that at least one row has.
std::vector<Figure> figures_of(Records rows);

}  // namespace kvmark
