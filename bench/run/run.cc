#include "bench/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include "bench/compare/history.h"
#include "bench/record/environment.h"
#include "bench/record/probes.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/run/callgrind.h"
#include "bench/run/dry_run.h"
#include "bench/run/group_run.h"
#include "bench/run/interrupt.h"
#include "bench/run/progress.h"
#include "bench/run/run_folder.h"
#include "bench/run/run_report.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Plan> load_plans(const RunRequest& request) {
  std::vector<Plan> plans;
  for (const std::string& config : request.configs) {
    plans.push_back(load_plan(config, request.overrides));
  }
  return plans;
}

std::string joined_name(const std::vector<Plan>& plans) {
  std::string name;
  for (const Plan& plan : plans) name += (name.empty() ? "" : "+") + plan.name;
  return name;
}

// Leaves out the cases whose id `drop` wants to go, asked in the plans' order, and groups without
// any.
template <typename Drop>
void drop_cases(std::vector<Plan>& plans, Drop drop) {
  for (Plan& plan : plans) {
    for (Group& group : plan.groups) {
      std::vector<Case> kept;
      for (Case& c : group.cases) {
        if (!drop(case_id(c))) kept.push_back(std::move(c));
      }
      group.cases = std::move(kept);
    }
    const auto is_empty = [](const Group& group) { return group.cases.empty(); };
    plan.groups.erase(std::remove_if(plan.groups.begin(), plan.groups.end(), is_empty),
                      plan.groups.end());
  }
}

// The first of equal cases stays. Returns how many went.
int drop_repeated(std::vector<Plan>& plans) {
  std::set<std::string> seen;
  int dropped = 0;
  drop_cases(plans, [&](const std::string& id) {
    const bool repeated = !seen.insert(id).second;
    dropped += repeated;
    return repeated;
  });
  return dropped;
}

std::vector<std::string> case_ids_of(const std::vector<Plan>& plans) {
  std::vector<std::string> ids;
  for (const Plan& plan : plans) {
    for (const Group& group : plan.groups) {
      for (const Case& c : group.cases) ids.push_back(case_id(c));
    }
  }
  return ids;
}

// All cases of all plans, group by group; rows go to the folder as they come.
class Run {
 public:
  Run(std::vector<Plan> plans, const RunFolder& folder, const WorkerCommand& worker,
      std::ostream& err)
      : plans_(std::move(plans)), folder_(folder), worker_(worker), err_(err) {
    double predicted_s = 0;
    int cases = 0;
    for (const Plan& plan : plans_) {
      for (const Group& group : plan.groups) {
        for (const Case& c : group.cases) {
          predicted_s += seconds_of_[case_id(c)] = predicted_seconds(c, plan.sampling);
          ++cases;
        }
      }
    }
    progress_.emplace(STDERR_FILENO, cases, predicted_s);
  }

  void run() {
    const InterruptScope interrupts;
    for (const Plan& plan : plans_) {
      for (const Group& group : plan.groups) {
        throw_if_interrupted();
        run_group(group.cases, context(plan.sampling));
      }
    }
  }

  int rows() const { return rows_; }

 private:
  RunContext context(const Sampling& sampling) {
    RunContext context;
    context.sampling = sampling;
    context.worker = worker_;
    context.folder = folder_.path;
    context.run_id = folder_.run_id;
    context.machine = machine_;
    context.memory_bytes = memory_budget();
    context.append = [this](const Json& record) { append(record); };
    context.warn = [this](const std::string& text) { warn(text); };
    context.progress = &*progress_;
    return context;
  }

  static double predicted_seconds(const Case& c, const Sampling& sampling) {
    const Prediction predicted = predict(c, sampling.settle_steps);
    return skip_reason(c, predicted, sampling, {}) ? 0
                                                   : predicted_case_seconds(predicted, sampling);
  }

  void append(const Json& record) {
    append_record(folder_.records_path(), record);
    ++rows_;
    progress_->done(seconds_of_[record.at("case_id").get<std::string>()]);
    if (record.at("status") != "ok") {
      warn(fmt::format("{} {}: {}", record["case"].value("engine", ""),
                       record["status"].get<std::string>(), record["reason"].get<std::string>()));
    }
  }

  void warn(const std::string& text) {
    progress_->clear();
    err_ << "kvmark: " << text << std::endl;
  }

  std::vector<Plan> plans_;
  const RunFolder& folder_;
  const WorkerCommand& worker_;
  std::ostream& err_;
  const MachineState machine_ = sample_machine();
  std::map<std::string, double> seconds_of_;  // by case_id, as predicted
  std::optional<Progress> progress_;
  int rows_ = 0;
};

// Nothing is added to what is no history; better to know before hours of work.
void check_history(const std::string& path) {
  if (!path.empty() && std::filesystem::exists(path)) History::read(path);
}

std::vector<std::string> statuses_of(const std::vector<Json>& rows) {
  std::vector<std::string> statuses;
  for (const Json& row : rows) statuses.push_back(row.at("status").get<std::string>());
  return statuses;
}

ReportRequest report_of(const RunFolder& folder) {
  return {{folder.path}, folder.path + "/report.html", folder.path + "/plots"};
}

// The page and the plots of a run that is done. What keeps them from being written takes back
// nothing that was measured.
ExitCode report_on(const RunFolder& folder, std::ostream& err) {
  try {
    write_report(report_of(folder), err);
    return kExitFine;
  } catch (const Interrupted&) {
    err << fmt::format("kvmark: interrupted; the run is done, its rows are kept in {}\n",
                       folder.path);
    return kExitInterrupted;
  } catch (const std::exception& e) {
    err << "kvmark: " << e.what() << std::endl;
    return kExitFailed;
  }
}

}  // namespace

ExitCode exit_code_of(const std::vector<std::string>& statuses) {
  const auto any = [&](const char* status) {
    return std::find(statuses.begin(), statuses.end(), status) != statuses.end();
  };
  if (any("invalid")) return kExitInvalid;
  return any("failed") ? kExitFailed : kExitFine;
}

ExitCode run(const RunRequest& request, std::ostream& out, std::ostream& err) {
  std::vector<Plan> plans = load_plans(request);
  if (const int dropped = drop_repeated(plans); dropped > 0) {
    err << fmt::format("kvmark: the plans hold {} case{} a second time; each case runs once\n",
                       dropped, dropped == 1 ? "" : "s");
  }
  if (request.dry_run) {
    out << dry_run_table(plans, memory_budget());
    return kExitFine;
  }
  if (request.resume && request.folder.empty()) {
    throw UsageError("--resume needs the folder of the run to go on with: -o DIR");
  }

  check_history(request.history);
  for (const Plan& plan : plans) {
    if (plan.counted()) check_valgrind();
  }

  const std::string name = joined_name(plans);
  Planned planned;
  for (const Plan& plan : plans) planned.plans.push_back(plan.as_run);
  planned.case_ids = case_ids_of(plans);
  const RunFolder folder =
      open_run_folder(request.folder.empty() ? default_run_folder(name) : request.folder, name,
                      request.resume, planned);
  if (!folder.warning.empty()) err << "kvmark: " << folder.warning << std::endl;
  drop_cases(plans, [&](const std::string& id) { return folder.ended.count(id) > 0; });
  // Until there are new ones: an interrupted run has none, nor has one with --no-report.
  if (request.resume && !case_ids_of(plans).empty()) remove_report(report_of(folder), err);

  Run all(std::move(plans), folder, request.worker, err);
  try {
    all.run();
  } catch (const Interrupted&) {
    err << fmt::format("kvmark: interrupted; {} rows are kept in {}; go on with --resume -o {}\n",
                       all.rows(), folder.path, folder.path);
    return kExitInterrupted;
  }

  const std::vector<Json> rows = read_run(folder.path).rows;
  out << table(rows) << std::flush;
  if (!request.history.empty()) append_history(request.history, rows);
  err << "records: " << folder.records_path() << std::endl;
  const ExitCode code = exit_code_of(statuses_of(rows));
  return request.report ? worst_of({code, report_on(folder, err)}) : code;
}

}  // namespace kvmark
