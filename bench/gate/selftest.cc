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
#include "bench/record/json_lines.h"
#include "bench/record/stats.h"
#include "bench/run/interrupt.h"
#include "bench/run/run_folder.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPairSeconds = 0.8;  // for the progress line's first guess
constexpr int kResampledRuns = 4000;
constexpr int kResampledSlowdowns = 1000;
constexpr double kSlowdowns[] = {0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3};
constexpr uint64_t kSeed = 1;  // of the resampling: the same data give the same rates

uint64_t fresh_seed() { return std::random_device()(); }

// The test's lines, {"kind": "test" | "pair" | "run" | "slowed", …}: what is there need not be
// measured again.
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
          fmt::format("{}: holds a test of other builds, cases or slowdowns; expected "
                      "the same ones, or another folder: -o DIR",
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

// "92 of 94 (95 %: 92.52–99.74 %)", the interval's confidence.
std::string text_of(const Share& share) {
  if (share.trials == 0) return "none taken";
  const auto [low, high] = proportion_interval(share.hits, share.trials, 0.95);
  return fmt::format("{} of {} (95 %: {:.2f}–{:.2f} %)", share.hits, share.trials, 100 * low,
                     100 * high);
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
    take_pairs();
    take_runs();
    take_slowed_runs();
    progress_.reset();
  }

  ExitCode report() {
    const RecordedRounds rounds = recorded();
    out_ << fmt::format("{} rows, {} pairs of visits without a change\n", rows_.size(),
                        log_.count("pair"));
    if (rounds.size() < Resampler::kFewestRounds) {
      out_ << fmt::format(
          "too few to say anything about this machine: expected at least {} for "
          "each row; go on with --pairs {} -o {}\n",
          Resampler::kFewestRounds, Resampler::kFewestRounds * rows_.size(), folder_);
      return kExitUndecided;
    }
    const double sigma = report_sigma(rounds);
    Resampler resampler(rounds, request_.procedure, kSeed);
    const Share red{resampler.red_runs(kResampledRuns), kResampledRuns};
    const Share found = resample(resampler, request_.slowdown);
    out_ << fmt::format("false alarms, whole runs:  {}\n", text_of(red_runs()))
         << fmt::format("false alarms, resampled:   {}\n", text_of(red))
         << fmt::format("{:.3g} % slower found:      {}{}\n", 100 * request_.slowdown,
                        text_of(slowed_runs()), slowed_by())
         << fmt::format("the same, resampled:       {}\n", text_of(found));
    report_smallest(resampler);
    if (sigma > kPromisedSigma) {
      out_ << fmt::format(
          "this machine is too noisy for the promise, which is made up to a σ of "
          "{:.0f} %: see the smallest slowdown\n",
          100 * kPromisedSigma);
      return kExitFine;
    }
    const bool seen = keeps_promise(red, found);
    out_ << fmt::format(
        "promised here: without a change at most {:.0f} % of runs red; {:.0f} % of "
        "slowdowns of {:.3g} % found: {}\n",
        100 * kPromisedFalseAlarms, 100 * kPromisedFound, 100 * request_.slowdown,
        seen ? "seen" : "NOT seen");
    return seen ? kExitFine : kExitUndecided;
  }

 private:
  Json head() const {
    Json ids = Json::array(), labels = Json::array();
    for (const TimedRow& row : rows_) {
      ids.push_back(case_id(row.spec));
      labels.push_back(case_label(row.spec));
    }
    return {
        {"kind", "test"},           {"schema", "kvmark-selftest/1"}, {"base", request_.base.name},
        {"new", request_.now.name}, {"slowdown", request_.slowdown}, {"rows", ids},
        {"labels", labels}};
  }

  void stage(const char* what, int count, double seconds_each) {
    progress_.emplace(STDERR_FILENO, std::max(0, count), std::max(0, count) * seconds_each, what);
    seconds_each_ = seconds_each;
  }

  // Rows in turn, so that a round of them is a moment of the machine.
  void take_pairs() {
    const int rows = static_cast<int>(rows_.size());
    const int rounds = (request_.pairs + rows - 1) / rows;
    stage("pairs", rounds * rows - log_.count("pair"), kPairSeconds);
    VisitPairs visits(request_.base, request_.now, visit_, fresh_seed());
    for (int taken = log_.count("pair"); taken < rounds * rows; ++taken) {
      const VisitPairs::Pair pair = visits.take(rows_[taken % rows].spec, taken / rows);
      log_.append({{"kind", "pair"},
                   {"round", taken / rows},
                   {"row", taken % rows},
                   {"difference", pair.difference()},
                   {"first", pair.base_first ? "base" : "new"},
                   {"base_ms", pair.base.step_ms},
                   {"new_ms", pair.now.step_ms},
                   {"base_disturbance", pair.base.disturbance},
                   {"new_disturbance", pair.now.disturbance}});
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
    Binary slowed = request_.now;
    slowed.extra_work = request_.slowdown;
    for (int i = log_.count("slowed"); i < request_.injected; ++i) {
      const int row = i % static_cast<int>(rows_.size());
      TimedRows run({rows_[row]}, request_.base, slowed, p, visit_, fresh_seed());
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
    RecordedRounds rounds;
    for (const Json& pair : log_.of_kind("pair")) {
      if (pair.at("row") == 0) rounds.emplace_back();
      rounds.back().push_back(pair.at("difference"));
    }
    if (!rounds.empty() && rounds.back().size() < rows_.size()) rounds.pop_back();
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

  // Resampled rates as promised; slowed runs that prove theirs (of 94 at most one is missed); whole
  // runs, which are few, that do not disprove it.
  bool keeps_promise(const Share& red, const Share& found) const {
    return red.value() <= kPromisedFalseAlarms && found.value() >= kPromisedFound &&
           slowed_runs().bounds()[0] >= kPromisedFound &&
           red_runs().bounds()[0] <= kPromisedFalseAlarms;
  }

  const SelftestRequest& request_;
  std::ostream& out_;
  const Plan plan_;
  const std::vector<TimedRow> rows_;
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
