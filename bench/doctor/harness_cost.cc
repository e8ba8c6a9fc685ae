#include "bench/doctor/harness_cost.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "bench/record/clock.h"
#include "bench/record/profiler.h"
#include "bench/record/stats.h"
#include "bench/run/step_runner.h"
#include "bench/run/workload.h"
#include "engines/cpu/cpu_engine.h"

namespace kvmark {
namespace {

constexpr int kSettleSteps = 8;
constexpr int kLoops = 15, kSteps = 2000;

// The calls of one step, in order: a layer, or a phase.
class CallList : public StepObserver {
 public:
  void enter(Phase phase) override { calls_.push_back({phase, -1, {}}); }
  void enter_layer(int layer) override { calls_.push_back({std::nullopt, layer, {}}); }
  void attended(int layer, Outputs, std::span<const Piece>, Tensor, Tensor, Tensor,
                Tensor out) override {
    calls_.push_back({std::nullopt, layer, out});
  }

  int phases() const {
    return static_cast<int>(std::count_if(calls_.begin(), calls_.end(),
                                          [](const Call& call) { return call.phase.has_value(); }));
  }

  void replay(StepObserver& observer) const {
    for (const Call& call : calls_) {
      if (call.phase) {
        observer.enter(*call.phase);
      } else if (call.out.data == nullptr) {
        observer.enter_layer(call.layer);
      } else {
        observer.attended(call.layer, Outputs::last, {}, {}, {}, {}, call.out);
      }
    }
  }

 private:
  struct Call {
    std::optional<Phase> phase;
    int layer;
    Tensor out;
  };
  std::vector<Call> calls_;
};

CallList calls_of_a_step(const Case& c) {
  ThreadPool pool(c.threads);
  const std::unique_ptr<KvEngine> engine = make_cpu_engine(c.engine, kv_spec_of(c), pool, {});
  ModelRunner runner(c, pool);
  const SeqId seq = engine->open();
  CallList calls;
  const Piece piece{seq, 0, 1};
  engine->set_observer(&calls);
  runner.step(*engine, {&piece, 1}, Outputs::last, &calls);
  engine->set_observer(nullptr);
  return calls;
}

double replayed_ns(const CallList& calls) {
  StepProfiler profiler;
  std::array<double, kLoops> ns;
  for (double& loop : ns) {
    const int64_t start = now_ns();
    for (int step = 0; step < kSteps; ++step) {
      profiler.begin_step();
      calls.replay(profiler);
      profiler.end_step();
    }
    loop = static_cast<double>(now_ns() - start) / kSteps;
  }
  std::sort(ns.begin(), ns.end());
  return ns[kLoops / 2];
}

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
  HarnessCost cost;
  cost.step_ms = *summarize(Workload(c, kSettleSteps).round().itl_ms).p50;
  const CallList calls = calls_of_a_step(c);
  cost.clock_reads = calls.phases() + 2;  // and at both ends
  cost.step_cost_us = replayed_ns(calls) * 1e-3;
  return cost;
}

}  // namespace kvmark
