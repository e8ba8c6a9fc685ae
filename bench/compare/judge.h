// One metric of two rows: what decides, and how.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/compare/history.h"
#include "bench/record/metric_name.h"

namespace kvmark {

// Stands in the note of a noisy metric of which too few earlier runs are known.
inline constexpr std::string_view kNoiseUnknown = "noise unknown";

// The note of a noisy metric that would decide, had both runs been made on one machine.
inline constexpr std::string_view kAnotherMachine = "another machine";

// A row of fewer rounds says too little about its times to decide by.
inline constexpr int kFewestRounds = 3;

// What a comparison decides by, from the metrics table and the user's wishes.
struct Rule {
  MetricName name;
  Gate gate = Gate::shown;
  double threshold = 0;  // relative
  double floor = 0;      // in the metric's unit
};

// A rule for each figure of a record: numbers as they are, of summaries the median and p99. What is
// in `gated` or has a threshold of its own decides; thresholds by path (MetricName::path()).
// `time_threshold` replaces that of every gated time, and makes none decide.
std::vector<Rule> rules(const std::vector<MetricName>& gated,
                        const std::map<std::string, double>& thresholds,
                        std::optional<double> time_threshold);

// Worse or better where the figure moved beyond both `threshold`, in the ratio of the larger to the
// smaller, and `floor`.
Verdict verdict_of(Better better, double base, double now, double threshold, double floor);

// Every metric that one of the rows has. `same_machine` false: what is noisy is shown, not judged.
// Throws UsageError for a negative figure that would decide.
std::vector<MetricComparison> judge(const nlohmann::ordered_json& base,
                                    const nlohmann::ordered_json& now,
                                    const std::vector<Rule>& rules, const History& history,
                                    bool same_machine);

}  // namespace kvmark
