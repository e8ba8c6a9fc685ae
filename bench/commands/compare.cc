#include "bench/compare/compare.h"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/plan/thresholds.h"
#include "bench/run/run_folder.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

struct CompareRequest {
  std::string base, now;
  std::vector<std::string> metrics;
  std::string threshold;  // percent, or a file; "": none
  std::string history;    // "": none
  bool across_machines = false;
  ComparisonFlags shown;
};

// "5" and "5%" are percent; nothing for what is a file's name.
std::optional<double> percent(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= 1000)) {
    throw UsageError(fmt::format("--threshold {}: expected 0 to 1000 percent, or a file", text));
  }
  return value;
}

// The plan of the new run, and over it the user's.
void set_thresholds(const CompareRequest& request, CompareOptions& options) {
  options.thresholds = thresholds_of(request.now);
  if (request.threshold.empty()) return;
  if (const auto value = percent(request.threshold)) {
    options.time_threshold = *value / 100;
    return;
  }
  for (const auto& [path, value] : by_path(read_thresholds(request.threshold))) {
    options.thresholds[path] = value;
  }
}

ComparedRun rows_of(const std::string& run) {
  RunRows file = read_run(run);
  if (file.torn) std::cerr << "kvmark: " << *file.torn << "\n";
  return {run, std::move(file.rows), std::move(file.planned)};
}

int compare_runs(const CompareRequest& request) {
  // 1. What is asked for.
  request.shown.check({request.base, request.now, request.history, request.threshold});
  CompareOptions options;
  for (const std::string& metric : request.metrics) options.gated.push_back(parse_metric(metric));
  set_thresholds(request, options);
  options.across_machines = request.across_machines;
  if (!request.history.empty()) {
    options.history = History::read(request.history);
    if (options.history.torn) std::cerr << "kvmark: " << *options.history.torn << "\n";
  }

  // 2. The comparison, and what it says.
  Comparison comparison = compare(rows_of(request.base), rows_of(request.now), options);
  comparison.of_one_run = is_same_run(request.base, request.now);
  return request.shown.show(comparison);
}

}  // namespace

Command add_compare(CLI::App& kvmark) {
  const auto o = std::make_shared<CompareRequest>();
  CLI::App* compare = kvmark.add_subcommand("compare", "Compare two runs, case by case");
  compare->add_option("BASE", o->base, "The run to compare with: its folder, or its records.jsonl")
      ->required();
  compare->add_option("NEW", o->now, "The run to judge")->required();
  compare->add_option("--metric", o->metrics, "A further metric that decides; repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
  compare
      ->add_option("--threshold", o->threshold,
                   "Percent by which times may grow, or a YAML file of thresholds by metric")
      ->type_name("PCT|FILE");
  compare->add_option("--history", o->history, "Earlier runs, as `kvmark run --history` keeps them")
      ->type_name("FILE");
  compare->add_flag("--across-machines", o->across_machines,
                    "Runs of different machines: times are shown, not judged");
  o->shown.add_to(*compare);
  return {compare, [o] { return compare_runs(*o); }};
}

}  // namespace kvmark
