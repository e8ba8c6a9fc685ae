// A config file and flags → groups of cases.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/plan/case.h"

namespace kvmark {

struct Sampling {
  int rounds = 3;              // at most; the first always runs
  int settle_steps = 8;        // dropped at the start of a round
  double target_width = 0.02;  // of the median: narrower intervals stop the sampling (n ≥ 6)
  double budget_s = 10;        // of a group's case: no round starts after it
  double max_case_s = 600;     // a case whose one round is predicted over this is skipped
};

// The cases that are equal but for the engine.
struct Group {
  std::vector<Case> cases;
};

struct Plan {
  std::string name;
  std::string path;  // of the config
  Sampling sampling;
  std::vector<Group> groups;
  nlohmann::ordered_json as_run;  // the plan with every default and override written out

  // Its cases give counts in place of times.
  bool counted() const { return !groups.empty() && groups.front().cases.front().counted(); }
};

// `key` is an axis or field by its dotted path in the plan or its flag's name ("workload.seq_len",
// "engines", "sampling.rounds"), `text` its value as on the command line ("128-8192*2",
// "8:2,32:8"); `flag` is how to name it in an error ("--seq-len").
struct Override {
  std::string flag, key, text;
};

// Reads YAML or JSON (both through yaml-cpp, so that every error has file:line:column), binds it
// through the field table, applies overrides (--model before --set, in order), expands the axes and
// asks the catalog about every combination. Throws UsageError.
Plan load_plan(const std::string& path, const std::vector<Override>& overrides);

// The JSON Schema of plans, generated from the same field table (configs/schema.json is this).
nlohmann::ordered_json plan_schema();
// Markdown table of every field: key, type, default, meaning (docs/configs.md holds this).
std::string plan_reference();

// "128,256" | "128-8192*2" | "1024-4096+1024" and mixtures. Throws UsageError.
std::vector<int> parse_range(std::string_view text);

}  // namespace kvmark
