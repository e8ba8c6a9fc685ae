#include "bench/run/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/report.h"
#include "bench/run/columns.h"
#include "bench/run/group_run.h"
#include "bench/run/progress.h"

namespace kvmark {

double predicted_case_seconds(const Prediction& predicted, const Sampling& sampling) {
  const double round_s = std::max(predicted.round_s, 1e-9);
  const double by_budget = std::max(1.0, std::ceil(sampling.budget_s / round_s));
  return predicted.once_s + std::min<double>(sampling.rounds, by_budget) * predicted.round_s;
}

namespace {

using Cells = std::vector<std::string>;

// The groups that the report puts under one heading.
struct Section {
  std::string heading;
  std::vector<Cells> rows;
};

Section& section_named(std::vector<Section>& sections, const std::string& heading) {
  const auto it = std::find_if(sections.begin(), sections.end(),
                               [&](const Section& s) { return s.heading == heading; });
  if (it != sections.end()) return *it;
  const Cells titles = {"engine",  "prompt",      "gen",           "max_seq_len",
                        "KV live", "KV reserved", "process bytes", "seconds"};
  return sections.emplace_back(Section{heading, {titles}});
}

Cells cells_of(const Case& c, const Prediction& predicted, double seconds,
               const std::optional<std::string>& skip) {
  return {c.engine.name(),
          std::to_string(c.prompt_len),
          std::to_string(c.gen_len),
          std::to_string(c.max_seq_len),
          human_bytes(predicted.kv_live_bytes),
          human_bytes(predicted.kv_bytes),
          human_bytes(predicted.total_bytes),
          skip ? "skipped: " + *skip : human_seconds(seconds)};
}

// What the report calls each group, in the plans' order.
std::vector<std::string> group_headings(const std::vector<Plan>& plans) {
  std::vector<nlohmann::ordered_json> records;
  for (const Plan& plan : plans) {
    for (const Group& group : plan.groups) {
      records.emplace_back()["case"] = to_json(group.cases.front());
    }
  }
  return headings(records);
}

}  // namespace

std::string dry_run_table(const std::vector<Plan>& plans, std::optional<int64_t> memory_budget) {
  const std::vector<std::string> names = group_headings(plans);
  auto name = names.begin();
  std::vector<Section> sections;
  int cases = 0, skipped = 0;
  double seconds = 0;
  for (const Plan& plan : plans) {
    for (const Group& group : plan.groups) {
      Section& section = section_named(sections, *name++);
      for (const Case& c : group.cases) {
        const Prediction predicted = predict(c, plan.sampling.settle_steps);
        const double case_s = predicted_case_seconds(predicted, plan.sampling);
        const auto skip = skip_reason(c, predicted, plan.sampling, memory_budget);
        section.rows.push_back(cells_of(c, predicted, case_s, skip));
        ++cases;
        skip ? void(++skipped) : void(seconds += case_s);
      }
    }
  }
  std::string text;
  for (const Section& s : sections) text += fmt::format("{}\n{}\n", s.heading, aligned(s.rows));
  return text + fmt::format(
                    "{} case{}, {} of them skipped, about {} (estimates: within a factor of 2 or "
                    "3)\n",
                    cases, cases == 1 ? "" : "s", skipped, human_seconds(seconds));
}

}  // namespace kvmark
