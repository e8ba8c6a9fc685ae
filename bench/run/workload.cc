#include "bench/run/workload.h"

#include <algorithm>
#include <bit>

#include "bench/record/clock.h"
#include "bench/record/stats.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_engine.h"

namespace kvmark {
namespace {

constexpr int kTimelinePoints = 64;

// The last output row of each piece: what a digest is made of.
template <typename Use>
void for_last_rows(Outputs outputs, std::span<const Piece> pieces, Tensor out, Use use) {
  if (outputs == Outputs::none) return;
  int row = -1;
  for (const Piece& piece : pieces) {
    row += outputs == Outputs::all ? piece.rows : 1;
    use(out.row(row), out.cols);
  }
}

// Watches a timed step: the profile, and in sampled steps the outputs. They are only copied here
// and hashed when the clock has stopped.
class RoundObserver : public StepProfiler {
 public:
  explicit RoundObserver(size_t outputs_of_step) { outputs_.reserve(outputs_of_step); }
  bool sampling = false;

  void attended(int, Outputs outputs, std::span<const Piece> pieces, Tensor, Tensor, Tensor,
                Tensor out) override {
    if (!sampling) return;
    for_last_rows(outputs, pieces, out, [this](const float* row, int cols) {
      outputs_.insert(outputs_.end(), row, row + cols);
    });
  }

  // After the step.
  void hash_outputs() {
    digest_.add(outputs_.data(), static_cast<int64_t>(outputs_.size()));
    outputs_.clear();
  }
  std::string digest() const { return digest_.hex(); }

 private:
  std::vector<float> outputs_;
  Digest digest_;
};

// Watches an untimed step: the digest, and whoever wants to see more.
class RehearsalObserver : public StepObserver {
 public:
  explicit RehearsalObserver(StepObserver* watch) : watch_(watch) {}
  Digest digest;

  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override {
    for_last_rows(outputs, pieces, out,
                  [this](const float* row, int cols) { digest.add(row, cols); });
    if (watch_) watch_->attended(layer, outputs, pieces, q, k, v, out);
  }

 private:
  StepObserver* watch_;
};

Case without_score(Case c) {
  c.score = {};
  return c;
}

}  // namespace

std::vector<int> sampled_steps(int gen_len, int most) {
  std::vector<int> steps;
  const int count = std::min(gen_len, most);
  for (int i = 0; i < count; ++i) {
    steps.push_back(count == 1 ? 0 : static_cast<int>(int64_t{i} * (gen_len - 1) / (count - 1)));
  }
  return steps;
}

void Digest::add(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    state_ = (state_ ^ std::bit_cast<uint32_t>(values[i])) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
}

std::string Digest::hex() const { return fmt::format("{:016x}", state_); }

Workload::Workload(const Case& c, int settle_steps, double extra_work)
    : case_(c),
      rounds_case_(without_score(c)),
      settle_steps_(settle_steps),
      pool_(c.threads, c.pin ? ThreadPool::Pinning::cpu_each : ThreadPool::Pinning::none),
      extra_work_(extra_work),
      engine_(make_engine(rounds_case_)),
      sampled_(c.gen_len) {
  if (c.level == Level::model) {
    auto model = std::make_unique<ModelRunner>(c, pool_);
    model_ = model.get();
    runner_ = std::move(model);
  } else {
    runner_ = std::make_unique<AttentionRunner>(rounds_case_, pool_);
  }
  // Far out a check reads many rows back, so fewer steps stand for all.
  const int most = std::clamp(65536 / c.committed(), 3, 12);
  for (int step : sampled_steps(c.gen_len, most)) sampled_[step] = 1;
}

Workload::~Workload() = default;

std::unique_ptr<KvEngine> Workload::make_engine(const Case& c) {
  const CpuEngineOptions options{.pool_order = c.pool_order, .seed = c.seed};
  return make_cpu_engine(c.engine, kv_spec_of(c), pool_, options);
}

// The old one goes first: its memory may be needed.
void Workload::remake_engine(const Case& c) {
  sequences_.clear();
  engine_.reset();
  engine_ = make_engine(c);
}

std::unique_ptr<KvEngine> Workload::make_scoring_engine() { return make_engine(case_); }

bool Workload::keeps_rows() const { return case_.engine.layout != LayoutKind::recompute; }

void Workload::open() {
  for (int s = 0; s < case_.batch; ++s) sequences_.push_back(engine_->open());
}

void Workload::close() {
  for (SeqId seq : sequences_) engine_->close(seq);
  sequences_.clear();
}

// Rows [first, first + rows) of every sequence, in steps that the engine was made for. Only the
// last of them wants outputs.
void Workload::feed(int first, int rows, Outputs outputs, StepObserver* observer) {
  const int chunk = keeps_rows() ? max_rows_of(rounds_case_) / case_.batch : rows;
  for (int done = 0; done < rows;) {
    const int now = std::min(chunk, rows - done);
    const bool last = done + now == rows;
    pieces_.clear();
    for (SeqId seq : sequences_) pieces_.push_back({seq, first + done, now});
    runner_->step(*engine_, pieces_, last ? outputs : Outputs::none, observer);
    done += now;
  }
  fed_ += rows;
}

void Workload::first_step(Outputs outputs, StepObserver* observer) {
  feed(0, case_.first_rows(), outputs, observer);
}

// Feeds what the engine needs to generate token `step`: the token before it, or everything.
void Workload::decode_step(int step, StepObserver* observer) {
  const int end = case_.first_rows() + step;
  const int first = engine_->next(sequences_[0]);
  feed(first, end - first, Outputs::last, observer);
}

// What a decode time is of, and a count: callgrind.h knows it by its name, so it stays a function
// of its own.
[[gnu::noinline]] void Workload::timed_step(int step, StepProfiler& profiler) {
  profiler.begin_step();
  decode_step(step, &profiler);
  extra_work_.run();
  profiler.end_step();
}

// At attention level nothing computes the context's rows, so it is filled once and kept.
void Workload::fill(StepObserver* watch) {
  open();
  engine_->set_observer(watch);
  first_step(Outputs::none, nullptr);
  engine_->set_observer(nullptr);
  const int staged_from = keeps_rows() ? case_.first_rows() : 0;
  runner_->stage(staged_from, case_.committed() - staged_from);
}

// Brings the sequences to where token 0 is to be generated (model) or was (attention). They are
// kept open from round to round: memory that was given back would be faulted in again in a timed
// step. Growing is what a growing cache is measured for, so that one starts small again.
void Workload::to_start(StepObserver* watch) {
  if (model_ && case_.engine.policy == PolicyKind::grow) close();
  if (sequences_.empty()) return model_ ? open() : fill(watch);
  for (SeqId seq : sequences_) {
    if (const auto refusal = engine_->truncate(seq, model_ ? 0 : case_.first_rows())) {
      throw RuntimeError(fmt::format("{}: cannot go back to the start of the round: {}",
                                     case_.engine.name(), refusal->reason));
    }
  }
}

// Steps that warm caches, clocks and the pool, and are then forgotten. They are watched like timed
// ones, so that what watching starts up (ranges of NVTX) is not theirs.
void Workload::settle() {
  to_start();
  StepProfiler profiler;
  engine_->set_observer(&profiler);
  const int steps = std::min(settle_steps_, case_.gen_len - 1);
  if (model_) feed(0, 1, Outputs::last, nullptr);
  const int from = model_ ? 1 : case_.first_rows();
  for (int i = 0; i < steps; ++i) {
    const int first = engine_->next(sequences_[0]);
    profiler.begin_step("settle");
    feed(first, from + i + 1 - first, Outputs::last, &profiler);
    profiler.end_step();
  }
  engine_->set_observer(nullptr);
  to_start();
}

RoundSamples Workload::round() {
  if (extra_work_.due() && case_.gen_len > 1) {
    extra_work_.calibrate(*summarize(timed_round().itl_ms).p50);
  }
  return timed_round();
}

RoundSamples Workload::timed_round() {
  settle();
  engine_->take_events();
  const KvSpec& spec = engine_->spec();
  RoundObserver observer(size_t(spec.layers) * case_.batch * spec.heads * spec.v_dim);
  RoundSamples samples;
  samples.itl_ms.reserve(case_.gen_len);
  samples.attend_ms.reserve(case_.gen_len);
  engine_->set_observer(&observer);
  fed_ = 0;
  const Probes before = sample_probes();
  if (model_) {
    observer.sampling = true;
    observer.begin_step("prefill");
    first_step(Outputs::last, &observer);
    observer.end_step();
    observer.hash_outputs();
    samples.first_token_ms = ms_from_ns(observer.step_ns());
  }
  const CounterReading counted_before = counters_.read();
  for (int step = 1; step < case_.gen_len; ++step) {
    observer.sampling = sampled_[step];
    timed_step(step, observer);
    observer.keep();
    if (sampled_[step]) observer.hash_outputs();
    samples.itl_ms.push_back(ms_from_ns(observer.step_ns()));
    samples.attend_ms.push_back(ms_from_ns(observer.phase_ns(Phase::attend)));
  }
  samples.counts = counters_.read() - counted_before;
  samples.probes = sample_probes() - before;
  engine_->set_observer(nullptr);
  samples.digest = observer.digest();
  samples.profile = observer.profile();
  samples.positions_computed = fed_;
  samples.footprint = engine_->footprint();
  samples.events = engine_->take_events();
  return samples;
}

std::string Workload::rehearse(StepObserver* watch) {
  remake_engine(rounds_case_);
  to_start(watch);
  RehearsalObserver observer(watch);
  timeline_.clear();
  const bool all_steps = keeps_rows() || case_.tokens == TokenMode::greedy;
  const int every = std::max(1, (case_.gen_len + kTimelinePoints - 1) / kTimelinePoints);
  for (int step = model_ ? 0 : 1; step < case_.gen_len; ++step) {
    if (!sampled_[step] && !all_steps) continue;
    engine_->set_observer(sampled_[step] ? &observer : nullptr);
    step == 0 ? first_step(Outputs::last, nullptr) : decode_step(step, nullptr);
    if (step % every == 0 || step + 1 == case_.gen_len) {
      timeline_.push_back({case_.first_rows() + step, engine_->footprint()});
    }
  }
  engine_->set_observer(nullptr);
  clamped_ = engine_->footprint().saturated;
  return observer.digest.hex();
}

// On an engine of that length: the case's own would be touched all over and then given back, and
// memory that is new to the process is what takes longest.
void Workload::run_short(int steps, StepObserver& watch) {
  Case shorter = rounds_case_;
  shorter.max_seq_len = steps;
  remake_engine(shorter);
  open();
  if (!model_) runner_->stage(0, steps);
  engine_->set_observer(&watch);
  for (int step = 0; step < steps; ++step) {
    const int first = engine_->next(sequences_[0]);
    feed(first, step + 1 - first, Outputs::last, nullptr);
  }
  engine_->set_observer(nullptr);
  close();
}

}  // namespace kvmark
