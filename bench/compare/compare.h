// `kvmark compare`: two runs, paired by case, and what became better or worse.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/compare/history.h"
#include "bench/record/metric_name.h"

namespace kvmark {

struct CompareOptions {
  std::vector<MetricName> gated;             // decide besides those of the metrics table
  std::map<std::string, double> thresholds;  // relative, by MetricName::path()
  std::optional<double> time_threshold;      // of the one time that decides, over `thresholds`
  History history;                           // empty: how much runs differ is not known
  bool across_machines = false;              // else another CPU or number of cores is refused
  bool exact_only = false;                   // times and other measurements are left out
};

struct ComparedRun {
  std::string name;                          // as the user called it
  std::vector<nlohmann::ordered_json> rows;  // one a case
  std::set<std::string> planned = {};        // case ids that the run was to have; empty: unknown
};

// A case that was ok in the base, that `now` planned and has no row of, has vanished; so has every
// one that it lacks where its plan is unknown. Exact figures are held against each other as they
// are, times where both rows are of one machine. Where a row has no figures its status alone is
// compared. Throws UsageError for runs of different machines, unless across_machines, and for rows
// of different cases under one id.
Comparison compare(const ComparedRun& base, const ComparedRun& now, const CompareOptions& options);

}  // namespace kvmark
