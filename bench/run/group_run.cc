#include "bench/run/group_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "bench/record/environment.h"
#include "bench/record/stats.h"
#include "bench/report/report.h"
#include "bench/run/interrupt.h"
#include "bench/run/run_folder.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// The anchor's figure may move by this part between waves before the later rows say so.
constexpr double kAnchorDrift = 0.05;

// A file of the run's folder that goes with the group.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// May the case itself write what format loss is measured against? Scoring takes another engine.
bool is_reference(const Case& c) {
  return c.engine.name() == parse_engine("contiguous").name() && c.score.text.empty();
}

// Computes what format loss is measured against, by a worker of its own that is gone afterwards.
CaseRun::Reference make_reference(const Case& like, const std::string& path,
                                  const RunContext& context) {
  Case c = like;
  c.engine = parse_engine("contiguous");
  c.preset = "contiguous";
  const Prediction predicted = predict(c, context.sampling.settle_steps);
  if (context.memory_bytes && predicted.total_bytes > *context.memory_bytes) {
    return {{},
            fmt::format("the reference needs {} of memory, {} are there",
                        human_bytes(predicted.total_bytes), human_bytes(*context.memory_bytes))};
  }
  Progress* progress = context.progress;
  const auto tick = [progress] {
    if (progress) progress->tick();
  };
  if (progress) progress->now(fmt::format("reference of {}", case_label(c)));
  try {
    WorkerProcess worker(context.worker, "reference", context.log_path());
    const double patience = context.patience.seconds(predicted.once_s + predicted.round_s);
    const Json sampling = {{"settle_steps", context.sampling.settle_steps}};
    worker.request({{"cmd", "prepare"}, {"case", to_json(c)}, {"sampling", sampling}}, "ready",
                   patience, tick);
    worker.request({{"cmd", "reference"}, {"path", path}}, "referenced", patience, tick);
    return {path, ""};
  } catch (const WorkerFailed& e) {
    const std::string reason = fmt::format("the reference worker: {}", e.what());
    context.warn(fmt::format("{}: no format loss: {}", case_label(c), reason));
    return {{}, reason};
  }
}

// One round of each. Those that got through it alternate, where they are several; a case whose
// companions have all died does not.
void take_turn(const std::vector<CaseRun*>& order, bool only_wave) {
  std::vector<CaseRun*> measured;
  for (CaseRun* run : order) {
    const size_t before = run->figures().size();
    run->round();
    if (run->figures().size() > before) measured.push_back(run);
  }
  if (!only_wave || measured.size() < 2) return;
  for (CaseRun* run : measured) run->note_turns();
}

// Rounds A B C, then C B A, …, so that a drift of the machine's speed falls on all alike. In the
// only wave of a group each case ends after the turn that its last round was in.
void alternate(const std::vector<CaseRun*>& runs, bool only_wave) {
  const auto due = [](const CaseRun* run) { return run->sampling(); };
  for (bool forward = true; std::any_of(runs.begin(), runs.end(), due); forward = !forward) {
    std::vector<CaseRun*> order;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(order), due);
    if (!forward) std::reverse(order.begin(), order.end());
    take_turn(order, only_wave);
    for (CaseRun* run : runs) {
      if (only_wave && !run->sampling()) run->finish();
    }
  }
}

std::optional<double> median(const std::vector<double>& figures) {
  return figures.empty() ? std::nullopt : summarize(figures).p50;
}

class GroupRun {
 public:
  GroupRun(const std::vector<Case>& cases, const RunContext& context)
      : cases_(cases),
        context_(context),
        group_run_(fmt::format("{}@{}.{}", group_id(cases.front()), utc_now(), getpid())) {}

  void run() {
    admit();
    if (admitted_.empty()) return;
    for (size_t index : admitted_) {
      runs_.push_back(std::make_unique<CaseRun>(cases_[index], predictions_[runs_.size()],
                                                group_run_, context_));
    }
    const std::vector<Wave> waves = plan_waves(bytes_, context_.memory_bytes);
    const TemporaryFile file(reference_path(context_.folder));
    find_reference(waves.front(), std::filesystem::absolute(file.path()));
    for (const Wave& wave : waves) run_wave(wave, waves.size() == 1);
    runs_.front()->finish();
  }

 private:
  // Writes the rows of the cases that are not run, keeps the others.
  void admit() {
    for (size_t i = 0; i < cases_.size(); ++i) {
      const Prediction predicted = predict(cases_[i], context_.sampling.settle_steps);
      const auto reason =
          skip_reason(cases_[i], predicted, context_.sampling, context_.memory_bytes);
      if (reason) {
        context_.append(skipped_record(cases_[i], *reason, group_run_, context_));
        continue;
      }
      admitted_.push_back(i);
      predictions_.push_back(predicted);
      bytes_.push_back(predicted.total_bytes);
    }
  }

  // A case of the first wave writes the reference while it is verified, where that is one: nothing
  // is filled and computed twice.
  void find_reference(const Wave& wave, const std::string& path) {
    for (size_t i : wave.cases) {
      if (!is_reference(runs_[i]->spec())) continue;
      if (runs_[i]->start_as_reference(path) && std::filesystem::exists(path)) {
        reference_.path = path;
      }
      break;
    }
    if (!reference_.path) reference_ = make_reference(runs_.front()->spec(), path, context_);
  }

  // With several waves the rows wait for the end of the wave, and the anchor's for the last one.
  void run_wave(const Wave& wave, bool only) {
    CaseRun& anchor = *runs_.front();
    if (!wave.with_anchor) anchor.finish();
    std::vector<CaseRun*> runs;
    for (size_t i : wave.cases) runs.push_back(runs_[i].get());
    const auto anchor_before = median(anchor.figures());
    if (anchor_before) anchor.sample_again();
    for (CaseRun* run : runs) {
      if (!run->started()) run->start(reference_);
    }
    alternate(runs, only);
    if (wave.with_anchor) note_drift(anchor_before, median(anchor.figures()), runs);
    for (CaseRun* run : runs) {
      if (run != &anchor) run->finish();
    }
  }

  void note_drift(std::optional<double> before, std::optional<double> after,
                  const std::vector<CaseRun*>& runs) {
    if (!before || !after || *before <= 0) return;
    const double moved = *after / *before - 1;
    if (std::abs(moved) <= kAnchorDrift) return;
    for (CaseRun* run : runs) {
      run->doubt(fmt::format("{} moved by {:+.0f} % since the group's last wave",
                             runs_.front()->spec().engine.name(), 100 * moved));
    }
  }

  const std::vector<Case>& cases_;
  const RunContext& context_;
  const std::string group_run_;
  std::vector<size_t> admitted_;  // of cases_; the vectors below run parallel to it
  std::vector<Prediction> predictions_;
  std::vector<int64_t> bytes_;
  std::vector<std::unique_ptr<CaseRun>> runs_;
  CaseRun::Reference reference_;
};

}  // namespace

std::optional<int64_t> memory_budget() {
  const auto available = available_memory();
  if (!available) return {};
  return static_cast<int64_t>(kMemoryShare * static_cast<double>(*available));
}

std::vector<Wave> plan_waves(const std::vector<int64_t>& bytes, std::optional<int64_t> budget) {
  std::vector<Wave> waves{Wave{{0}, true}};
  std::vector<size_t> alone;
  int64_t taken = bytes[0];
  for (size_t i = 1; i < bytes.size(); ++i) {
    if (budget && bytes[0] + bytes[i] > *budget) {
      alone.push_back(i);
      continue;
    }
    if (budget && taken + bytes[i] > *budget) {
      waves.push_back({{0}, true});
      taken = bytes[0];
    }
    waves.back().cases.push_back(i);
    taken += bytes[i];
  }
  for (size_t i : alone) waves.push_back({{i}, false});
  return waves;
}

void run_group(const std::vector<Case>& cases, const RunContext& context) {
  if (!cases.empty()) GroupRun(cases, context).run();
}

std::optional<std::string> skip_reason(const Case& c, const Prediction& predicted,
                                       const Sampling& sampling,
                                       std::optional<int64_t> memory_budget) {
  if (c.device != "cpu") return fmt::format("this build has no engines for `{}`", c.device);
  if (predicted.round_s > sampling.max_case_s) {
    return fmt::format("one round is predicted to take {}, over sampling.max_case_s of {}",
                       human_seconds(predicted.round_s), human_seconds(sampling.max_case_s));
  }
  if (memory_budget && predicted.total_bytes > *memory_budget) {
    return fmt::format("predicted to need {} of memory; {:.0f} % of what is available are {}",
                       human_bytes(predicted.total_bytes), 100 * kMemoryShare,
                       human_bytes(*memory_budget));
  }
  return {};
}

}  // namespace kvmark
