#include "bench/gate/ab.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <random>

#include "bench/compare/compare.h"
#include "bench/compare/render.h"
#include "bench/gate/common_cases.h"
#include "bench/gate/timed_rows.h"
#include "bench/record/environment.h"
#include "bench/record/metric_name.h"
#include "bench/record/record.h"
#include "bench/record/whole_file.h"
#include "bench/run/group_run.h"
#include "bench/run/interrupt.h"
#include "bench/run/run_folder.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

class Ab {
 public:
  enum class Ending { whole, interrupted, failed };

  Ab(const AbRequest& request, std::ostream& err)
      : request_(request), err_(err), plan_(timed_plan(request.config, request.overrides)) {
    folder_ = request.folder.empty() ? default_run_folder("ab-" + plan_.name) : request.folder;
    if (std::filesystem::exists(folder_ + "/ab.json")) {
      throw UsageError(fmt::format(
          "-o {}: is there already; expected a new folder: each comparison of two builds "
          "measures afresh",
          folder_));
    }
    Planned planned{{plan_.as_run}, {}};
    for (const Group& group : plan_.groups) {
      for (const Case& c : group.cases) planned.case_ids.push_back(case_id(c));
    }
    base_folder_ = open_run_folder(folder_ + "/base", plan_.name, false, planned);
    now_folder_ = open_run_folder(folder_ + "/new", plan_.name, false, planned);
    visit_ = request.visit;
    visit_.settle_steps = plan_.sampling.settle_steps;
    visit_.log_path = folder_ + "/visits.log";
    visit_.tick = [this] {
      if (progress_) progress_->tick();
    };
  }

  const std::string& folder() const { return folder_; }
  const Comparison& comparison() const { return comparison_; }

  // Throws Interrupted.
  void go() {
    const InterruptScope interrupts;
    find_cases();
    compare_exactly();
    choose_rows();
    if (timed_) time_rows();
    write(Ending::whole);
  }

  // Everything that there is: the pairs, the decisions, and the comparison (not strict).
  void write(Ending ending) const {
    Json json = {{"schema", "kvmark-ab/1"},
                 {"base", request_.base.name},
                 {"new", request_.now.name},
                 {"plan", plan_.as_run},
                 {"seed", seed_},
                 {"interrupted", ending == Ending::interrupted},
                 {"failed", ending == Ending::failed},
                 {"rows_confirmed", timed_ ? Json(timed_->procedure().kept()) : Json()},
                 {"visits", timed_ ? Json(timed_->visits().visits()) : Json()},
                 {"visits_repeated", timed_ ? Json(timed_->visits().repeats()) : Json()},
                 {"rows", timed_ ? timed_->to_json() : Json::array()},
                 {"comparison", Json::parse(render(comparison_, "json", false))}};
    write_whole(folder_ + "/ab.json",
                json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

 private:
  void find_cases() {
    progress_.emplace(STDERR_FILENO, 0, 0);
    progress_->now("asking both builds which cases they know");
    CommonCases common = common_cases(plan_, request_.base, request_.now, visit_);
    groups_ = std::move(common.groups);
    comparison_.one_sided = std::move(common.one_sided);
    unknown_ = std::move(common.unknown);
  }

  // One verified visit of each case by each build.
  void compare_exactly() {
    size_t cases = 0;
    for (const Group& group : groups_) cases += group.cases.size();
    progress_.emplace(STDERR_FILENO, static_cast<int>(2 * cases), 0);
    std::vector<Json> base = verify(request_.base, base_folder_);
    std::vector<Json> now = verify(request_.now, now_folder_);
    progress_.reset();
    CompareOptions options;
    options.exact_only = true;
    options.thresholds = thresholds_of(now_folder_.path);
    std::vector<std::string> of_times;
    for (const auto& [path, threshold] : options.thresholds) {
      if (parse_metric(path).field->certainty == Certainty::noisy) of_times.push_back(path);
    }
    std::vector<OneSided> one_sided = std::move(comparison_.one_sided);
    comparison_ = compare({request_.base.name, base}, {request_.now.name, now}, options);
    comparison_.one_sided = std::move(one_sided);
    for (const std::string& which : unknown_) {
      comparison_.notes.push_back("neither build knows " + which);
    }
    if (!of_times.empty()) {
      comparison_.notes.push_back(
          fmt::format("thresholds of the plan that count in `kvmark compare` only: {}",
                      fmt::join(of_times, ", ")));
    }
    if (request_.base.build == request_.now.build) {
      comparison_.notes.push_back("both sides are the same build");
    }
    for (const Json& row : base) digests_[row["case_id"]].first = text(row["digest"]);
    for (const Json& row : now) digests_[row["case_id"]].second = text(row["digest"]);
  }

  static std::string text(const Json& json) {
    return json.is_string() ? json.get<std::string>() : std::string();
  }

  std::vector<Json> verify(const Binary& binary, const RunFolder& folder) {
    RunContext context;
    context.sampling = plan_.sampling;
    context.sampling.rounds = 1;
    context.worker = binary.worker;
    context.folder = folder.path;
    context.run_id = folder.run_id;
    context.machine = machine_;
    context.memory_bytes = memory_budget();
    context.patience = request_.visit.patience;
    context.warn = [this](const std::string& warning) { warn(warning); };
    context.progress = &*progress_;
    int rows = 0;
    context.append = [&](const Json& record) {
      append_record(folder.records_path(), record);
      ++rows;
      progress_->done(0);
    };
    for (const Group& group : groups_) run_group(group.cases, context);
    return rows > 0 ? read_run(folder.path).rows : std::vector<Json>();
  }

  // The rows whose time is gated, unless what is exact has decided already.
  void choose_rows() {
    if (const ExitCode code = exit_code_of(comparison_, false);
        code != kExitFine && code != kExitUndecided) {
      comparison_.notes.push_back("times were not compared: what is exact has decided already");
      return;
    }
    std::vector<TimedRow> rows;
    int not_ok = 0, without_steps = 0, beyond = 0;
    for (const Group& group : groups_) {
      for (const Case& c : group.cases) {
        CaseComparison* compared = find(case_id(c));
        const bool ok = compared && compared->base_status == "ok" && compared->status == "ok";
        if (!ok || c.gen_len < 2 || rows.size() == kMostGatedRows) {
          ++(!ok ? not_ok : c.gen_len < 2 ? without_steps : beyond);
          continue;
        }
        const auto& [base, now] = digests_.at(compared->case_id);
        rows.push_back({c, base, now});
        gated_.push_back(compared->case_id);
      }
    }
    note_untimed(not_ok, "is not ok on both sides");
    note_untimed(without_steps, "has no decode steps");
    note_untimed(beyond, fmt::format("comes after the first {}", kMostGatedRows));
    comparison_.times_lost = rows.empty();
    if (rows.empty()) return;
    timed_.emplace(std::move(rows), request_.base, request_.now, request_.procedure, visit_, seed_);
  }

  void note_untimed(int rows, std::string_view why) {
    if (rows == 0) return;
    comparison_.notes.push_back(
        fmt::format("{} of {} rows not timed: each {}", rows, comparison_.cases.size(), why));
  }

  void time_rows() {
    bool confirming = false;
    const auto new_stage = [&](const char* what) {
      const int pairs = timed_->procedure().pairs_due();
      progress_.emplace(STDERR_FILENO, pairs, kPairSeconds * pairs, what);
    };
    new_stage("pairs of visits");
    timed_->take_all([&] {
      progress_->done(kPairSeconds);
      if (timed_->procedure().confirming() && !confirming) {
        confirming = true;
        new_stage("pairs of visits at least, to confirm what looks slower");
      }
    });
    progress_.reset();
    for (size_t i = 0; i < gated_.size(); ++i) {
      timed_->complete(static_cast<int>(i), *find(gated_[i]));
    }
    comparison_.times_lost = timed_->all_dropped();
    const VisitPairs& visits = timed_->visits();
    comparison_.notes.push_back(fmt::format(
        "{} visits, {} of them repeated because others disturbed them{}", visits.visits(),
        visits.repeats(),
        visits.unknown() == 0
            ? ""
            : fmt::format("; of {} this system does not tell whether", visits.unknown())));
  }

  CaseComparison* find(const std::string& id) {
    const auto it = std::find_if(comparison_.cases.begin(), comparison_.cases.end(),
                                 [&](const CaseComparison& c) { return c.case_id == id; });
    return it == comparison_.cases.end() ? nullptr : &*it;
  }

  void warn(const std::string& warning) {
    if (progress_) progress_->clear();
    err_ << "kvmark: " << warning << std::endl;
  }

  const AbRequest& request_;
  std::ostream& err_;
  const Plan plan_;
  const MachineState machine_ = sample_machine();
  const uint64_t seed_ = std::random_device()();  // of the environments' lengths
  std::string folder_;
  RunFolder base_folder_, now_folder_;
  VisitOptions visit_;
  std::optional<Progress> progress_;
  std::vector<Group> groups_;
  std::vector<std::string> unknown_;  // cases that neither build knows
  Comparison comparison_;
  std::map<std::string, std::pair<std::string, std::string>> digests_;  // base's and new's
  std::vector<std::string> gated_;  // case ids, as the timed rows
  std::optional<TimedRows> timed_;
};

}  // namespace

std::optional<Comparison> ab(const AbRequest& request, std::ostream& err) {
  Ab both(request, err);
  try {
    both.go();
  } catch (const Interrupted&) {
    both.write(Ab::Ending::interrupted);
    err << fmt::format("kvmark: interrupted; what was measured is kept in {}\n", both.folder());
    return {};
  } catch (...) {
    both.write(Ab::Ending::failed);
    throw;
  }
  err << fmt::format("pairs and decisions: {}/ab.json\n", both.folder());
  return both.comparison();
}

}  // namespace kvmark
