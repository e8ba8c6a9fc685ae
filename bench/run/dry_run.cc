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

std::string dry_run_table(const std::vector<Plan>& plans, std::optional<int64_t> memory_budget) {
  std::vector<std::vector<std::string>> rows{{"engine", "device", "model", "level", "prompt", "gen",
                                              "batch", "threads", "KV bytes",
                                              "process bytes, seconds"}};
  int cases = 0, skipped = 0;
  double seconds = 0;
  for (const Plan& plan : plans) {
    for (const Group& group : plan.groups) {
      for (const Case& c : group.cases) {
        const Prediction predicted = predict(c, plan.sampling.settle_steps);
        const double case_s = predicted_case_seconds(predicted, plan.sampling);
        const auto skip = skip_reason(c, predicted, plan.sampling, memory_budget);
        const std::string cost =
            fmt::format("{}, {}", human_bytes(predicted.total_bytes), human_seconds(case_s));
        rows.push_back({c.engine.name(), c.device, c.model.name,
                        c.level == Level::model ? "model" : "attention",
                        std::to_string(c.prompt_len), std::to_string(c.gen_len),
                        std::to_string(c.batch), std::to_string(c.threads),
                        human_bytes(predicted.kv_bytes), skip ? "skipped: " + *skip : cost});
        ++cases;
        skip ? void(++skipped) : void(seconds += case_s);
      }
    }
  }
  return aligned(rows) + fmt::format(
                             "{} cases, {} of them skipped, about {} (estimates: within "
                             "a factor of 2 or 3)\n",
                             cases, skipped, human_seconds(seconds));
}

}  // namespace kvmark
