// The two files that github-action-benchmark reads: it draws a curve for each name over commits,
// and wants to be told for a whole file whether smaller or bigger is better.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/report/report.h"

namespace kvmark {

struct GhaFiles {
  nlohmann::ordered_json smaller, bigger;  // customSmallerIsBetter, customBiggerIsBetter
};

// An entry {name, unit, value, range, extra} for each figure that a comparison decides by, and the
// decode rate; rows without figures have none. `range` is half the interval of a median, where
// there is one.
GhaFiles gha(Records records);

}  // namespace kvmark
