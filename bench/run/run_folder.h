// The folder of a run: plan.json, records.jsonl, workers.log.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace kvmark {

struct RunFolder {
  std::string path;
  std::string run_id;           // of its first start
  std::set<std::string> ended;  // case ids that need not run again: ok, invalid or skipped
  std::string warning;          // about a torn last line, "" where there is none

  std::string records_path() const { return path + "/records.jsonl"; }
};

// Makes `path` (with its parents) a new run's folder and writes plan.json: {"run_id", "plans"}.
// With `resume` a run that is there is continued: its run_id, rows and plans stay, plans that
// differ from all of them are added, and what a killed run left half done goes. Throws UsageError
// when there is a run and `resume` is not set (nothing is ever overwritten), for a name that no
// folder can have, and for rows that cannot be read; then nothing has been touched.
RunFolder open_run_folder(const std::string& path, const std::string& name, bool resume,
                          const std::vector<nlohmann::ordered_json>& plans);

// Where a group's reference lies while the group runs.
std::string reference_path(const std::string& folder);

// results/NAME-20260131T123456Z.
std::string default_run_folder(const std::string& name);

// The rows that count: of several rows of a case the last one, in the order in which the cases
// first appeared. A failed case that was run again has several.
std::vector<nlohmann::ordered_json> latest_rows(std::vector<nlohmann::ordered_json> records);

// RUN on a command line: a run's folder, or a file of records. Throws UsageError when it is
// neither, or holds no record.
std::string records_path_of(const std::string& run);

}  // namespace kvmark
