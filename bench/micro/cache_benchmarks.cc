// The engines' attention and append, through the seam by which a decoder drives them.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bench/micro/benchmarks.h"
#include "bench/record/profiler.h"
#include "engines/catalog/catalog.h"
#include "engines/catalog/engine_spec.h"
#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_engine.h"

namespace kvmark {
namespace {

constexpr int kKvHeads = 4;
constexpr int kFillRows = 512;  // rows of a step that fills a context

struct CacheShape {
  std::string engine;
  int head_dim, group, context;
  int max_rows = kFillRows;  // of a step

  KvSpec spec(int layers) const {
    KvSpec spec;
    spec.layers = layers;
    spec.heads = kKvHeads * group;
    spec.kv_heads = kKvHeads;
    spec.k_dim = spec.v_dim = head_dim;
    spec.rope = Rope{.dims = head_dim};
    spec.max_len = context + 1;
    spec.max_rows = max_rows;
    return spec;
  }
};

// An engine with one sequence, and rows to feed it with.
class Cache {
 public:
  Cache(const CacheShape& shape, int layers, ThreadPool& pool)
      : engine_(make_cpu_engine(parse_engine(shape.engine), shape.spec(layers), pool)),
        seq_(engine_->open()),
        q_(normal_values(int64_t{shape.max_rows} * kKvHeads * shape.group * shape.head_dim)),
        kv_(normal_values(int64_t{shape.max_rows} * kKvHeads * shape.head_dim)),
        out_(q_) {
    engine_->set_observer(&profiler_);
  }

  void fill(int context) {
    while (rows() < context) {
      attend(std::min(engine_->spec().max_rows, context - rows()), Outputs::none);
      engine_->commit();
    }
  }

  // Feeds `rows` rows through all layers. The engine forgets them afterwards.
  void step(int rows, Outputs outputs) {
    profiler_.begin_step();
    attend(rows, outputs);
    profiler_.end_step();
    engine_->rollback();
  }

  // Of the last step, all layers together.
  double seconds_in(Phase phase) const { return 1e-9 * profiler_.phase_ns(phase); }

  int rows() const { return engine_->seen(seq_); }
  // Of one row in all layers.
  int64_t row_bytes() const { return engine_->footprint().live_bytes / rows(); }

 private:
  void attend(int rows, Outputs outputs) {
    const KvSpec& spec = engine_->spec();
    const Piece piece{seq_, engine_->next(seq_), rows};
    const auto refusal = engine_->begin({&piece, 1});
    check(!refusal, "{}", refusal ? refusal->reason : "");
    const int q_cols = spec.heads * spec.k_dim, kv_cols = spec.kv_heads * spec.k_dim;
    const Tensor q{q_.data(), rows, q_cols}, kv{kv_.data(), rows, kv_cols};
    const Tensor out{out_.data(), outputs == Outputs::all ? rows : 1, q_cols};
    for (int layer = 0; layer < spec.layers; ++layer) {
      engine_->attend(layer, outputs, q, kv, kv, out);
    }
  }

  std::unique_ptr<KvEngine> engine_;
  SeqId seq_;
  std::vector<float> q_;    // (max_rows, heads · head_dim)
  std::vector<float> kv_;   // (max_rows, kv_heads · head_dim): keys and values alike
  std::vector<float> out_;  // as q_
  StepProfiler profiler_;
};

// A filled cache in as many layers as take up the machine's working set.
std::unique_ptr<Cache> filled_cache(const CacheShape& shape, Machine& machine) {
  const int lengths[] = {shape.context};
  const int64_t layer_bytes =
      predict_footprint(parse_engine(shape.engine), shape.spec(1), lengths).live_bytes;
  const int64_t layers = (machine.working_set_bytes() + layer_bytes - 1) / layer_bytes;
  auto cache = std::make_unique<Cache>(shape, static_cast<int>(layers), machine.pool());
  cache->fill(shape.context);
  return cache;
}

void attend(benchmark::State& state, Machine& machine, Cache& cache) {
  time_reads(state, machine.ceiling(), cache.row_bytes() * (cache.rows() + 1), [&] {
    cache.step(1, Outputs::last);
    return cache.seconds_in(Phase::attend);
  });
}

// `gb_per_s`: what is stored; `of_step`: append's part of append and attention together.
void append(benchmark::State& state, Cache& cache) {
  std::vector<double> rates, parts;
  for (auto _ : state) {
    cache.step(1, Outputs::last);
    const double seconds = cache.seconds_in(Phase::append);
    state.SetIterationTime(seconds);
    rates.push_back(static_cast<double>(cache.row_bytes()) / seconds / 1e9);
    parts.push_back(seconds / (seconds + cache.seconds_in(Phase::attend)));
  }
  state.counters["gb_per_s"] = median(rates);
  state.counters["of_step"] = median(parts);
}

// Scores and their sums over the rows j ≤ i: two multiply-adds a channel.
void prefill(benchmark::State& state, Machine& machine, const CacheShape& shape, Cache& cache) {
  const double rows = shape.max_rows, seen = rows * (rows + 1) / 2;
  time_flops(state, machine.pool(), 4.0 * kKvHeads * shape.group * shape.head_dim * seen, [&] {
    cache.step(shape.max_rows, Outputs::all);
    return cache.seconds_in(Phase::attend);
  });
}

void register_attend(Lab& lab, Machine& machine, std::string_view codec, const char* layout,
                     int head_dim) {
  for (const int group : {1, 3, 4, 7, 8}) {
    for (const int context : {512, 4096, 16384, 65536}) {
      const CacheShape shape{fmt::format("{}/{}", layout, codec), head_dim, group, context};
      lab.add(
          fmt::format("attend/{}/{}/d{}/g{}/{}/t{}", codec, layout, head_dim, group, context,
                      machine.threads()),
          [=, &machine] { return filled_cache(shape, machine); },
          [&machine](benchmark::State& state, Cache& cache) { attend(state, machine, cache); });
    }
  }
}

void register_append(Lab& lab, Machine& machine, std::string_view codec, int head_dim) {
  constexpr int kGroup = 4, kContext = 512;
  const CacheShape shape{fmt::format("contiguous/{}", codec), head_dim, kGroup, kContext};
  lab.add(
      fmt::format("append/{}/d{}/t{}", codec, head_dim, machine.threads()),
      [=, &machine] { return filled_cache(shape, machine); }, append);
}

void register_prefill(Lab& lab, Machine& machine, int head_dim) {
  constexpr int kGroup = 4;
  for (const int rows : {512, 2048}) {
    const CacheShape shape{"recompute", head_dim, kGroup, rows, rows};
    lab.add(
        fmt::format("prefill/f32/d{}/g{}/{}/t{}", head_dim, kGroup, rows, machine.threads()),
        [=, &machine] { return std::make_unique<Cache>(shape, 1, machine.pool()); },
        [=, &machine](benchmark::State& state, Cache& cache) {
          prefill(state, machine, shape, cache);
        });
  }
}

}  // namespace

void register_cache_benchmarks(Lab& lab) {
  for (const auto& machine : lab.machines()) {
    for (const int head_dim : {64, 128}) {
      for (const Codec& codec : codecs()) {
        for (const char* layout : {"contiguous", "paged:16", "paged:128"}) {
          register_attend(lab, *machine, codec.name, layout, head_dim);
        }
        register_append(lab, *machine, codec.name, head_dim);
      }
      register_prefill(lab, *machine, head_dim);
    }
  }
}

}  // namespace kvmark
