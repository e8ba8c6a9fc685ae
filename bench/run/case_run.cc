#include "bench/run/case_run.h"

#include <fmt/format.h>

#include "bench/record/clock.h"
#include "bench/record/environment.h"
#include "bench/record/record.h"
#include "bench/record/stats.h"
#include "bench/run/callgrind.h"
#include "bench/run/interrupt.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWidthRounds = 6;  // fewer have no interval of the median
constexpr double kFinishSeconds = 60;

// A reply of the right kind whose parts have the wrong shape is a babbling worker's.
void require(bool ok, const char* reply, const char* what) {
  if (!ok) throw WorkerFailed(fmt::format("its `{}` has no {}", reply, what));
}

bool is_numbers(const Json& reply, const char* key) {
  if (!reply.contains(key) || !reply[key].is_array()) return false;
  for (const Json& value : reply[key]) {
    if (!value.is_number()) return false;
  }
  return true;
}

bool is_text(const Json& reply, const char* key) {
  return reply.contains(key) && reply[key].is_string();
}

}  // namespace

void check_verified(const Json& reply) {
  require(is_text(reply, "digest"), "verified", "digest");
  const bool has_passed = reply.contains("correct") && reply["correct"].is_object() &&
                          reply["correct"].contains("passed") &&
                          reply["correct"]["passed"].is_boolean();
  require(has_passed, "verified", "correct.passed");
}

// Peers may say less than our own worker.
std::string why_incorrect(const Json& correct) {
  const Json stored = correct.value("stored_error", Json());
  if (stored.is_number() && stored.get<double>() > 1) {
    return fmt::format(
        "not correct: stored rows differ from the fed ones by {:.3g} times what the "
        "format may lose",
        stored.get<double>());
  }
  return fmt::format(
      "not correct: relative RMS error {} against attention over the stored rows, {} allowed",
      correct.value("rel_rms", Json()).dump(), correct.value("tolerance", Json()).dump());
}

void check_samples(const Json& reply) {
  require(is_text(reply, "digest"), "samples", "digest");
  require(is_numbers(reply, "itl_ms"), "samples", "list of numbers itl_ms");
  require(is_numbers(reply, "attend_ms"), "samples", "list of numbers attend_ms");
  const bool has_figure = (reply.contains("tpot_ms") && reply["tpot_ms"].is_number()) ||
                          (reply.contains("e2e_ms") && reply["e2e_ms"].is_number());
  require(has_figure, "samples", "tpot_ms and no e2e_ms");
}

std::optional<std::string> stop_reason(const Sampling& sampling, const std::vector<double>& figures,
                                       double spent_s) {
  if (figures.empty()) return {};
  if (sampling.rounds <= 1) return "single";
  if (static_cast<int>(figures.size()) >= sampling.rounds) return "cap";
  if (figures.size() >= kWidthRounds) {
    const auto width = relative_width(summarize(figures));
    if (width && *width <= sampling.target_width) return "width";
  }
  if (spent_s >= sampling.budget_s) return "budget";
  return {};
}

CaseRun::CaseRun(const Case& c, const Prediction& predicted, std::string group_run,
                 const RunContext& context)
    : case_(c), predicted_(predicted), group_run_(std::move(group_run)), context_(context) {}

void CaseRun::start(const Reference& reference) {
  guarded([&] {
    prepare();
    Json request = {{"cmd", "verify"}, {"reference", nullptr}};
    if (reference.path) request["reference"] = *reference.path;
    verify(std::move(request));
    if (!reference.path) {
      outcome_.events.push_back({{"kind", "no_reference"}, {"reason", reference.missing_because}});
    }
    judge();
  });
}

bool CaseRun::start_as_reference(const std::string& path) {
  guarded([&] {
    prepare();
    verify({{"cmd", "verify"}, {"reference", nullptr}, {"write", path}});
    judge();
  });
  return !written_;
}

void CaseRun::prepare() {
  outcome_.started = utc_now();
  const WorkerCommand command =
      case_.counted() ? under_callgrind(context_.worker, counts_path()) : context_.worker;
  worker_ = std::make_unique<WorkerProcess>(command, case_label(case_), context_.log_path());
  const Json sampling = {{"settle_steps", context_.sampling.settle_steps}};
  outcome_.ready = ask({{"cmd", "prepare"}, {"case", to_json(case_)}, {"sampling", sampling}},
                       "ready", predicted_.once_s);
}

void CaseRun::verify(Json request) {
  const Json verified = ask(std::move(request), "verified", predicted_.once_s + predicted_.round_s);
  check_verified(verified);
  outcome_.verified = verified;
  digest_ = verified["digest"].get<std::string>();
}

// Ends the case where its results are wrong.
void CaseRun::judge() {
  const Json& correct = outcome_.verified["correct"];
  if (correct["passed"].get<bool>()) return;
  outcome_.void_timing = true;
  end("invalid", why_incorrect(correct));
}

void CaseRun::round() {
  guarded([&] {
    const int64_t from = now_ns();
    const Json samples =
        ask({{"cmd", "round"}, {"index", outcome_.samples.size()}}, "samples", predicted_.round_s);
    check_samples(samples);
    spent_s_ += 1e-9 * static_cast<double>(now_ns() - from);
    outcome_.samples.push_back(samples);
    figures_.push_back(round_figure(samples));

    const std::string digest = samples["digest"].get<std::string>();
    if (digest != digest_) {
      outcome_.void_timing = true;
      end("invalid", fmt::format("round {} computed something else (digest {}) than what was "
                                 "verified ({})",
                                 outcome_.samples.size(), digest, digest_));
      return;
    }
    stop_reason_ = stop_reason(context_.sampling, figures_, spent_s_);
  });
}

void CaseRun::sample_again() {
  figures_.clear();
  spent_s_ = 0;
  stop_reason_.reset();
}

void CaseRun::finish() {
  guarded([&] {
    outcome_.totals = ask({{"cmd", "finish"}}, "totals", 0);
    worker_->wait_for_exit(kFinishSeconds);
    outcome_.stop_reason = stop_reason_;
    if (case_.counted()) outcome_.instructions = read_callgrind(counts_path());
    const Json& verified = outcome_.verified;
    std::string missed;
    for (const std::string& gate : missed_gates(case_.gate, verified.value("loss", Json()))) {
      missed += (missed.empty() ? "" : "; ") + gate;
    }
    missed.empty() ? end("ok", {}) : end("invalid", missed);
  });
}

template <typename Step>
void CaseRun::guarded(Step step) {
  if (written_) return;
  try {
    step();
  } catch (const WorkerFailed& e) {
    end("failed", e.what());
  }
}

std::string CaseRun::counts_path() const {
  return fmt::format("{}/callgrind.out.{}", context_.folder, case_id(case_));
}

Json CaseRun::ask(Json command, const char* expected, double predicted_s) {
  Progress* progress = context_.progress;
  const std::string name = command["cmd"].get<std::string>();
  const std::string what =
      name == "round" ? fmt::format("round {}", outcome_.samples.size() + 1) : name;
  if (progress) progress->now(fmt::format("{}, {}", case_label(case_), what));
  return worker_->request(command, expected, context_.patience.seconds(predicted_s), [progress] {
    if (progress) progress->tick();
  });
}

// The worker goes first, so that its memory is free before the next one starts.
void CaseRun::end(const char* status, std::optional<std::string> reason) {
  worker_.reset();
  outcome_.status = status;
  outcome_.reason = std::move(reason);
  written_ = true;
  const RowIdentity identity{context_.run_id, group_run_};
  Json record;
  std::string wrong;
  try {
    record = build_record(case_, context_.sampling, identity, context_.machine, outcome_);
    const std::vector<std::string> problems = validate_record(record);
    if (!problems.empty()) wrong = problems.front();
  } catch (const Json::exception& e) {
    wrong = e.what();
  }
  if (!wrong.empty()) {
    CaseOutcome bare;
    bare.status = "failed";
    bare.reason = "its replies do not make a valid record: " + wrong;
    bare.started = outcome_.started;
    record = build_record(case_, context_.sampling, identity, context_.machine, bare);
  }
  context_.append(record);
}

Json skipped_record(const Case& c, const std::string& reason, const std::string& group_run,
                    const RunContext& context) {
  CaseOutcome outcome;
  outcome.status = "skipped";
  outcome.reason = reason;
  return build_record(c, context.sampling, {context.run_id, group_run}, context.machine, outcome);
}

std::string case_label(const Case& c) {
  std::string label = fmt::format("{} {} {} at {}", c.engine.name(), c.model.name,
                                  c.level == Level::model ? "model" : "attention", c.seq_len());
  if (c.batch > 1) label += fmt::format(" batch {}", c.batch);
  return label;
}

}  // namespace kvmark
