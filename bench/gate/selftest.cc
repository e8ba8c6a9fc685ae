#include "bench/gate/selftest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <ostream>
#include <random>

#include "bench/gate/ab.h"
#include "bench/gate/rank_statistics.h"
#include "bench/gate/resampling.h"
#include "bench/gate/timed_rows.h"
#include "bench/record/environment.h"
#include "bench/record/json_lines.h"
#include "bench/record/or_null.h"
#include "bench/record/stats.h"
#include "bench/run/interrupt.h"
#include "bench/run/run_folder.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kResampledRuns = 4000;
constexpr int kResampledSlowdowns = 1000;
constexpr double kSlowdowns[] = {0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3};
constexpr double kNextToNothing = 1e-9;  // of a step: a single operation
constexpr uint64_t kSeed = 1;            // of the resampling: the same data give the same rates

uint64_t fresh_seed() { return std::random_device()(); }

// The test's lines, {"kind": "test" | "verified" | "pair" | "run" | "slowed", …}: what is there
// need not be measured again.
class Log {
 public:
  // Throws UsageError where the file holds something else than a test that begins with `head`.
  Log(std::string path, const Json& head) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) {
      lines_ = read_json_lines(path_, "line of a selftest", [](const Json& line) {
                 return line.contains("kind") ? "" : "it has no `kind`";
               }).lines;
    }
    if (lines_.empty()) {
      append(head);
    } else if (lines_.front() != head) {
      throw UsageError(
          fmt::format("{}: holds a test of other builds, cases, slowdowns or procedures, or of "
                      "another CPU; expected the same ones, or another folder: -o DIR",
                      path_));
    }
  }

  void append(Json line) {
    append_json_line(path_, line);
    lines_.push_back(std::move(line));
  }

  std::vector<Json> of_kind(std::string_view kind) const {
    std::vector<Json> found;
    std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(found),
                 [&](const Json& line) { return line.at("kind") == kind; });
    return found;
  }
  int count(std::string_view kind) const { return static_cast<int>(of_kind(kind).size()); }

 private:
  std::string path_;
  std::vector<Json> lines_;
};

struct Share {
  int hits = 0, trials = 0;

  double value() const { return trials == 0 ? 0 : double(hits) / trials; }
  // Bounds that hold with 95 % each; nothing is known without trials.
  std::array<double, 2> bounds() const {
    return trials == 0 ? std::array{0.0, 1.0} : proportion_interval(hits, trials, 0.9);
  }
};

// "92 of 94 (95 %: 92.52–99.74 %)", the interval's confidence, and what it is an interval `of`.
std::string text_of(const Share& share, std::string_view of = "") {
  if (share.trials == 0) return "none taken";
  const auto [low, high] = proportion_interval(share.hits, share.trials, 0.95);
  return fmt::format("{} of {} (95 %{}: {:.2f}–{:.2f} %)", share.hits, share.trials, of, 100 * low,
                     100 * high);
}

// Of resampled rates: more draws narrow it, though they bring no more pairs.
constexpr const char* kOfDrawing = " of the drawing";

Json to_json(const Binary& binary) { return {{"name", binary.name}, {"build", binary.build}}; }

Json to_json(const ProcedureOptions& p) {
  return {{"screen_pairs", p.screen_pairs},
          {"keep", p.keep},
          {"confirm_pairs", p.confirm_pairs},
          {"further_pairs", p.further_pairs},
          {"half_width", p.half_width},
          {"most_pairs", p.most_pairs},
          {"slower", p.slower},
          {"surely_slower", p.surely_slower},
          {"risk", p.risk},
          {"undecided", p.undecided}};
}

Json this_cpu() {
  EnvironmentInput here;
  here.machine = sample_machine();
  return environment(here).at("cpu");
}

std::vector<TimedRow> rows_of(const Plan& plan) {
  std::vector<TimedRow> rows;
  for (const Group& group : plan.groups) {
    for (const Case& c : group.cases) {
      if (c.gen_len > 1 && rows.size() < kMostGatedRows) rows.push_back({c, "", ""});
    }
  }
  if (rows.empty()) throw UsageError(fmt::format("{}: no case has decode steps", plan.path));
  return rows;
}

class Selftest {
 public:
  Selftest(const SelftestRequest& request, std::ostream& out)
      : request_(request),
        out_(out),
        plan_(timed_plan(request.config, request.overrides)),
        rows_(rows_of(plan_)),
        folder_(request.folder.empty() ? default_run_folder("selftest-" + plan_.name)
                                       : request.folder),
        log_(folder_ + "/selftest.jsonl", head()) {
    visit_ = request.visit;
    visit_.settle_steps = plan_.sampling.settle_steps;
    visit_.log_path = folder_ + "/visits.log";
    visit_.tick = [this] {
      if (progress_) progress_->tick();
    };
  }

  const std::string& folder() const { return folder_; }

  // Throws Interrupted.
  void measure() {
    const InterruptScope interrupts;
    verify_rows();
    take_pairs();
    take_runs();
    take_slowed_runs();
    progress_.reset();
  }

  ExitCode report() {
    const RecordedRounds rounds = recorded();
    out_ << fmt::format("{} rounds without a change, a pair of visits of each of {} rows\n",
                        rounds.size(), rows_.size());
    if (rounds.size() < Resampler::kFewestRounds) {
      out_ << fmt::format(
          "too few to say anything about this machine: expected at least {}; go on with "
          "--aa-rounds {} -o {}\n",
          Resampler::kFewestRounds, Resampler::kFewestRounds, folder_);
      return kExitUndecided;
    }
    const double sigma = report_sigma(rounds);
    Resampler resampler(rounds, request_.procedure, kSeed);
    const Share red{resampler.red_runs(kResampledRuns), kResampledRuns};
    const Share found = resample(resampler, request_.slowdown);
    out_ << fmt::format("false alarms, whole runs:  {}\n", text_of(red_runs()))
         << fmt::format("false alarms, resampled:   {}\n", text_of(red, kOfDrawing))
         << fmt::format("{:.3g} % slower found:      {}{}\n", 100 * request_.slowdown,
                        text_of(slowed_runs()), slowed_by())
         << fmt::format("the same, resampled:       {}\n", text_of(found, kOfDrawing));
    report_smallest(resampler);
    const bool calm = say_promise(
        fmt::format("without a change at most {:.0f} % of runs red", 100 * kPromisedFalseAlarms),
        hardly_ever_red(red));
    if (sigma > kPromisedSigma) {
      out_ << fmt::format(
          "this machine is too noisy for the other promise, which is made up to a σ of {:.0f} %: "
          "see the smallest slowdown\n",
          100 * kPromisedSigma);
      return calm ? kExitFine : kExitUndecided;
    }
    const bool awake = say_promise(fmt::format("{:.0f} % of slowdowns of {:.3g} % found",
                                               100 * kPromisedFound, 100 * request_.slowdown),
                                   finds_slowdowns(found));
    return calm && awake ? kExitFine : kExitUndecided;
  }

 private:
  Json head() const {
    Json ids = Json::array(), labels = Json::array();
    for (const TimedRow& row : rows_) {
      ids.push_back(case_id(row.spec));
      labels.push_back(case_label(row.spec));
    }
    return {{"kind", "test"},
            {"schema", "kvmark-selftest/1"},
            {"base", to_json(request_.base)},
            {"new", to_json(request_.now)},
            {"cpu", this_cpu()},
            {"slowdown", request_.slowdown},
            {"procedure", to_json(request_.procedure)},
            {"visit",
             {{"min_steps", request_.visit.min_steps},
              {"min_steps_s", request_.visit.min_steps_s},
              {"settle_steps", plan_.sampling.settle_steps}}},
            {"rows", ids},
            {"labels", labels}};
  }

  void stage(const char* what, int count, double seconds_each) {
    progress_.emplace(STDERR_FILENO, std::max(0, count), std::max(0, count) * seconds_each, what);
    seconds_each_ = seconds_each;
  }

  // What pairs and runs are held to.
  void verify_rows() {
    const int known = log_.count("verified");
    stage("rows to verify", static_cast<int>(rows_.size()) - known, kPairSeconds);
    for (size_t row = known; row < rows_.size(); ++row) {
      const Case& spec = rows_[row].spec;
      log_.append({{"kind", "verified"},
                   {"row", row},
                   {"base", verified_digest(request_.base, spec, visit_)},
                   {"new", verified_digest(request_.now, spec, visit_)}});
      progress_->done(seconds_each_);
    }
    for (const Json& verified : log_.of_kind("verified")) {
      TimedRow& row = rows_.at(verified.at("row"));
      row.base_digest = verified.at("base");
      row.digest = verified.at("new");
    }
  }

  // Rows in turn, so that a round of them is a moment of the machine.
  void take_pairs() {
    const int rows = static_cast<int>(rows_.size());
    const int wanted = request_.rounds * rows;
    stage("pairs", wanted - log_.count("pair"), kPairSeconds);
    VisitPairs visits(request_.base, request_.now, visit_, fresh_seed());
    for (int taken = log_.count("pair"); taken < wanted; ++taken) {
      const TimedRow& row = rows_[taken % rows];
      const VisitPairs::Pair pair = visits.take(row.spec, taken / rows);
      hold_to_verified(row, pair);
      log_.append({{"kind", "pair"},
                   {"round", taken / rows},
                   {"row", taken % rows},
                   {"difference", pair.difference()},
                   {"first", pair.base_first ? "base" : "new"},
                   {"base_ms", pair.base.step_ms},
                   {"new_ms", pair.now.step_ms},
                   {"base_disturbance", or_null(pair.base.disturbance)},
                   {"new_disturbance", or_null(pair.now.disturbance)}});
      progress_->done(seconds_each_);
    }
  }

  void take_runs() {
    const double screen_s = kPairSeconds * request_.procedure.screen_pairs * rows_.size();
    stage("whole runs", request_.runs - log_.count("run"), screen_s);
    while (log_.count("run") < request_.runs) {
      TimedRows run(rows_, request_.base, request_.now, request_.procedure, visit_, fresh_seed());
      run.take_all([this] { progress_->tick(); });
      log_.append({{"kind", "run"},
                   {"visits", run.visits().visits()},
                   {"repeats", run.visits().repeats()},
                   {"rows", decided(run)}});
      progress_->done(seconds_each_);
    }
  }

  void take_slowed_runs() {
    const ProcedureOptions& p = request_.procedure;
    stage("slowed runs", request_.injected - log_.count("slowed"),
          kPairSeconds * (p.screen_pairs + p.confirm_pairs));
    // What a worker is to slow down it first times for a round, which warms it up. So both sides
    // do.
    Binary base = request_.base, slowed = request_.now;
    base.extra_work = kNextToNothing;
    slowed.extra_work = request_.slowdown;
    for (int i = log_.count("slowed"); i < request_.injected; ++i) {
      const int row = i % static_cast<int>(rows_.size());
      TimedRows run({rows_[row]}, base, slowed, p, visit_, fresh_seed());
      run.take_all([this] { progress_->tick(); });
      const RowDecision decision = run.procedure().decision(0);
      log_.append({{"kind", "slowed"},
                   {"row", row},
                   {"found", decision.finding == Finding::slower},
                   {"change", decision.change},
                   {"run", decided(run)}});
      progress_->done(seconds_each_);
    }
  }

  // The decisions of a run. A worker that dies ends the test: it is no question of noise.
  static Json decided(const TimedRows& run) {
    Json rows = run.to_json();
    for (Json& row : rows) {
      if (row["fault"].is_string()) throw RuntimeError(row["fault"].get<std::string>());
      row = {{"label", row["label"]}, {"decision", row["decision"]}};
    }
    return rows;
  }

  // Whole rounds only.
  RecordedRounds recorded() const {
    const std::vector<Json> pairs = log_.of_kind("pair");
    RecordedRounds rounds(pairs.size() / rows_.size(), std::vector<double>(rows_.size()));
    for (size_t i = 0; i < rounds.size() * rows_.size(); ++i) {
      rounds[i / rows_.size()][i % rows_.size()] = pairs[i].at("difference");
    }
    return rounds;
  }

  // The noise of each row; the largest.
  double report_sigma(const RecordedRounds& rounds) {
    double worst = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const double sigma = visit_sigma(rounds, static_cast<int>(i));
      worst = std::max(worst, sigma);
      out_ << fmt::format("  σ of a visit {:5.2f} %: {}\n", 100 * sigma, case_label(rows_[i].spec));
    }
    return worst;
  }

  Share red_runs() const {
    Share red{0, log_.count("run")};
    for (const Json& run : log_.of_kind("run")) {
      red.hits += std::any_of(run["rows"].begin(), run["rows"].end(), [](const Json& row) {
        return row["decision"]["finding"] == finding_word(Finding::slower);
      });
    }
    return red;
  }

  Share slowed_runs() const {
    Share found{0, log_.count("slowed")};
    for (const Json& run : log_.of_kind("slowed")) found.hits += run["found"].get<bool>();
    return found;
  }

  // How much slower the slowed runs were: whether the extra work was what it should be.
  std::string slowed_by() const {
    std::vector<double> changes;
    for (const Json& run : log_.of_kind("slowed")) changes.push_back(run["change"]);
    return changes.empty() ? "" : fmt::format(", by {:.1f} %", 100 * *summarize(changes).p50);
  }

  static Share resample(Resampler& resampler, double slowdown) {
    return {resampler.found(slowdown, kResampledSlowdowns), kResampledSlowdowns};
  }

  void report_smallest(Resampler& resampler) {
    for (const double slowdown : kSlowdowns) {
      const double share = resample(resampler, slowdown).value();
      out_ << fmt::format("  {:4.1f} % slower is found in {:5.1f} % of runs\n", 100 * slowdown,
                          100 * share);
      if (share < kPromisedFound) continue;
      out_ << fmt::format("smallest slowdown of these found in {:.0f} % of runs: {:.1f} %\n",
                          100 * kPromisedFound, 100 * slowdown);
      return;
    }
    out_ << fmt::format("no slowdown up to {:.0f} % is found in {:.0f} % of runs\n",
                        100 * std::end(kSlowdowns)[-1], 100 * kPromisedFound);
  }

  // The resampled rate as promised, and whole runs, which are few, that do not disprove it.
  bool hardly_ever_red(const Share& resampled) const {
    return resampled.value() <= kPromisedFalseAlarms &&
           red_runs().bounds()[0] <= kPromisedFalseAlarms;
  }

  // The resampled rate as promised, and slowed runs that prove it: of 94 at most one is missed.
  bool finds_slowdowns(const Share& resampled) const {
    return resampled.value() >= kPromisedFound && slowed_runs().bounds()[0] >= kPromisedFound;
  }

  bool say_promise(const std::string& what, bool seen) {
    out_ << fmt::format("promised here: {}: {}\n", what, seen ? "seen" : "NOT seen");
    return seen;
  }

  const SelftestRequest& request_;
  std::ostream& out_;
  const Plan plan_;
  std::vector<TimedRow> rows_;
  const std::string folder_;
  Log log_;
  VisitOptions visit_;
  std::optional<Progress> progress_;
  double seconds_each_ = 0;
};

}  // namespace

ExitCode selftest_gate(const SelftestRequest& request, std::ostream& out, std::ostream& err) {
  Selftest test(request, out);
  try {
    test.measure();
  } catch (const Interrupted&) {
    err << fmt::format("kvmark: interrupted; go on with -o {}\n", test.folder());
    return kExitInterrupted;
  }
  const ExitCode code = test.report();
  err << fmt::format("pairs and runs: {}/selftest.jsonl\n", test.folder());
  return code;
}

}  // namespace kvmark
