#include "bench/compare/compare.h"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/compare/render.h"
#include "bench/plan/thresholds.h"
#include "bench/record/whole_file.h"
#include "bench/run/run_folder.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

struct CompareRequest {
  std::string base, now;
  std::vector<std::string> metrics;
  std::string threshold;  // percent, or a file; "": none
  std::string history;    // "": none
  std::string format = "table";
  std::vector<std::string> outputs;  // FORMAT=FILE
  bool across_machines = false, strict = false, all = false;
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

using Thresholds = std::map<std::string, double>;

void set(const Thresholds& from, Thresholds& to) {
  for (const auto& [metric, value] : from) to[parse_metric(metric).path()] = value;
}

// The plan of the new run, and over it the user's.
Thresholds thresholds(const CompareRequest& request) {
  Thresholds all;
  try {
    set(thresholds_of(request.now), all);
  } catch (const UsageError& e) {  // written by another version, or by hand
    throw UsageError(fmt::format("{}/plan.json: thresholds: {}", request.now, e.what()));
  }
  if (request.threshold.empty()) return all;
  const auto value = percent(request.threshold);
  if (!value) {
    set(read_thresholds(request.threshold), all);
    return all;
  }
  for (const RecordField& field : record_fields()) {
    if (field.gate == Gate::time) all[parse_metric(field.path).path()] = *value / 100;
  }
  return all;
}

struct Output {
  std::string format, path;
};

// Before anything is read: what cannot be written need not be computed.
std::vector<Output> outputs(const CompareRequest& request) {
  std::vector<Output> all;
  const auto formats = render_formats();
  for (const std::string& text : request.outputs) {
    const size_t equals = std::min(text.find('='), text.size());
    Output output{text.substr(0, equals), text.substr(std::min(equals + 1, text.size()))};
    if (output.path.empty() ||
        std::find(formats.begin(), formats.end(), output.format) == formats.end()) {
      throw UsageError(fmt::format("--out {}: expected FORMAT=FILE, FORMAT one of: {}", text,
                                   fmt::join(formats, ", ")));
    }
    all.push_back(std::move(output));
  }
  return all;
}

ComparedRun rows_of(const std::string& run) {
  RunRows file = read_run(run);
  if (file.torn) std::cerr << "kvmark: " << *file.torn << "\n";
  return {run, std::move(file.rows)};
}

int compare_runs(const CompareRequest& request) {
  // 1. What is asked for.
  const std::vector<Output> files = outputs(request);
  CompareOptions options;
  for (const std::string& metric : request.metrics) options.gated.push_back(parse_metric(metric));
  options.thresholds = thresholds(request);
  options.across_machines = request.across_machines;
  if (!request.history.empty()) {
    options.history = History::read(request.history);
    if (options.history.torn) std::cerr << "kvmark: " << *options.history.torn << "\n";
  }

  // 2. The comparison, and what it says.
  const Comparison comparison = compare(rows_of(request.base), rows_of(request.now), options);
  for (const Output& file : files) {
    write_whole(file.path, render(comparison, file.format, request.strict, request.all));
  }
  print(render(comparison, request.format, request.strict, request.all));
  return exit_code_of(comparison, request.strict);
}

}  // namespace

Command add_compare(CLI::App& kvmark) {
  const auto o = std::make_shared<CompareRequest>();
  CLI::App* compare = kvmark.add_subcommand("compare", "Compare two runs, case by case");
  const std::vector<std::string> formats(render_formats().begin(), render_formats().end());
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
  compare->add_flag("--strict", o->strict, "What is undecided is an error (5)");
  compare->add_flag("--all", o->all, "List every metric of every case");
  compare->add_option("--format", o->format, fmt::format("{}", fmt::join(formats, ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(formats));
  compare->add_option("--out", o->outputs, "Write this form to a file as well; repeatable")
      ->type_name("FORMAT=FILE")
      ->allow_extra_args(false);
  return {compare, [o] { return compare_runs(*o); }};
}

}  // namespace kvmark
