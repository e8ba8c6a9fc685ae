#include "bench/doctor/harness_cost.h"

#include <memory>
#include <vector>

#include "bench/record/clock.h"
#include "bench/record/profiler.h"
#include "bench/record/stats.h"
#include "bench/run/step_runner.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_engine.h"

namespace kvmark {
namespace {

constexpr int kPairs = 600;

// Counts the phases that are entered, each with one look at the clock.
class PhaseCounter : public StepObserver {
 public:
  int phases = 0;
  void enter(Phase) override { ++phases; }
};

// One step at one position, over and over.
class RepeatedStep {
 public:
  RepeatedStep(const Case& c, ThreadPool& pool)
      : engine_(make_cpu_engine(c.engine, kv_spec_of(c), pool, {})),
        runner_(c, pool),
        piece_{engine_->open(), 0, 1} {
    for (; piece_.first < c.committed() / 2; ++piece_.first) run(nullptr);
  }

  void run(StepObserver* observer) {
    if (const auto refusal = engine_->truncate(piece_.seq, piece_.first)) {
      throw RuntimeError("doctor: a step cannot be repeated: " + refusal->reason);
    }
    runner_.step(*engine_, {&piece_, 1}, Outputs::last, observer);
  }

 private:
  const std::unique_ptr<KvEngine> engine_;
  ModelRunner runner_;
  Piece piece_;
};

}  // namespace

Case quickstart_case(int threads) {
  Case c;
  c.engine = parse_engine("contiguous");
  c.preset = "contiguous";
  c.source.name = "seed-gqa";
  c.model = model_preset(c.source.name);
  c.gen_len = 511;
  c.max_seq_len = 1024;
  c.threads = threads;
  return c;
}

HarnessCost measure_harness_cost(const Case& c) {
  ThreadPool pool(c.threads);
  RepeatedStep step(c, pool);
  StepProfiler profiler;
  const auto watched_ms = [&] {
    const int64_t start = now_ns();
    profiler.begin_step();
    step.run(&profiler);
    profiler.end_step();
    return ms_from_ns(now_ns() - start);
  };
  const auto unwatched_ms = [&] {
    const int64_t start = now_ns();
    step.run(nullptr);
    return ms_from_ns(now_ns() - start);
  };

  std::vector<double> steps_ms, added_ms;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool watched_first = pair % 2 == 0;
    double watched = 0;
    if (watched_first) watched = watched_ms();
    const double unwatched = unwatched_ms();
    if (!watched_first) watched = watched_ms();
    steps_ms.push_back(unwatched);
    added_ms.push_back(watched - unwatched);
  }
  PhaseCounter counter;
  step.run(&counter);

  const Summary added = summarize(added_ms);
  HarnessCost cost;
  cost.step_ms = *summarize(steps_ms).p50;
  cost.clock_reads = counter.phases + 2;  // and at both ends
  cost.share = *added.p50 / cost.step_ms;
  cost.share_ci95 = {(*added.p50_ci95)[0] / cost.step_ms, (*added.p50_ci95)[1] / cost.step_ms};
  return cost;
}

}  // namespace kvmark
