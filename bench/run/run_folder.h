// The folder of a run: plan.json, records.jsonl, workers.log.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace kvmark {

struct RunFolder {
  std::string path;
  std::string run_id;           // of its first start
  std::set<std::string> ended;  // case ids that need not run again: ok, invalid or skipped
  std::string warning;          // about a torn last line, "" where there is none

  std::string records_path() const { return path + "/records.jsonl"; }
};

// What a run is to do.
struct Planned {
  std::vector<nlohmann::ordered_json> plans;  // with every default and override written out
  std::vector<std::string> case_ids;          // in the plans' order
};

// Makes `path` (with its parents) a new run's folder and writes plan.json: {"run_id", "plans",
// "case_ids"}. With `resume` a run that is there is continued: its run_id, rows and plans stay,
// plans that differ from all of them are added, cases of earlier starts follow those of this one,
// and what a killed run left half
// done goes. Throws UsageError when there is a run and `resume` is not set (nothing is ever
// overwritten), for a name that no folder can have, and for rows that cannot be read; then nothing
// has been touched.
RunFolder open_run_folder(const std::string& path, const std::string& name, bool resume,
                          const Planned& planned);

// Where a group's reference lies while the group runs.
std::string reference_path(const std::string& folder);

// results/NAME-20260131T123456Z.
std::string default_run_folder(const std::string& name);

// The rows that count: of several rows of a case the last one, in the order in which the cases
// first appeared. A failed case that was run again has several.
std::vector<nlohmann::ordered_json> latest_rows(std::vector<nlohmann::ordered_json> records);

struct RunRows {
  std::vector<nlohmann::ordered_json> rows;
  std::optional<std::string> torn;        // as in RecordFile
  nlohmann::ordered_json plan = nullptr;  // its plan.json; null: there is none
  std::set<std::string> planned = {};     // case ids of that; empty: it has none
};

// RUN on a command line, a run's folder or a file of records: its rows that count, in the order of
// the plan.json beside it: they end in the order in which their sampling does. Rows that it does
// not know come last; without one all stay as they are. Throws UsageError when it is neither,
// holds no record, or has a plan.json that cannot be read, and as read_records() does.
RunRows read_run(const std::string& run);

// Are both RUNs, as read_run() takes them, one and the same? Throws UsageError as it does.
bool is_same_run(const std::string& one, const std::string& other);

// The `thresholds` that the plans of a run set (RUN as in read_run()), by MetricName::path(); the
// last plan with one counts. Empty where there is no plan.json. Throws UsageError naming the file
// for what is no threshold.
std::map<std::string, double> thresholds_of(const std::string& run);

}  // namespace kvmark
