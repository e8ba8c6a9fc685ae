// Micro-benchmarks: each codec's four kernels on one KV head, and the matrix-vector product.
//
// build/bin/kvmark_micro --benchmark_filter='scores/int8'
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/core/buffer.h"
#include "engines/core/thread_pool.h"
#include "engines/cpu/cpu_backend.h"

namespace kvmark {
namespace {

constexpr int kDim = 128;    // channels of a head
constexpr int kQueries = 4;  // query heads of a group, as in Llama-3-8B
constexpr int kRows = 4096;  // stored rows, 2 MiB in f32: more than the first-level cache

std::vector<float> normal_values(size_t n) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(bits);
  return values;
}

// kRows stored rows of one KV head, with queries to ask them by.
struct Head {
  explicit Head(const Codec& codec)
      : codec(codec),
        tile(codec.tile(kDim)),
        rows(normal_values(size_t{kRows} * kDim)),
        q(normal_values(size_t{kQueries} * kDim)),
        s(size_t{kQueries} * kBlock, 1.0f / kRows),
        o(size_t{kQueries} * kDim),
        scratch(size_t{kBlock} * kDim),
        tiles((kRows + tile.tokens - 1) / tile.tokens * static_cast<size_t>(tile.bytes)) {
    encode();
  }

  std::byte* tile_of(int row) { return tiles.data() + row / tile.tokens * tile.bytes; }
  void encode() {
    for (int row = 0; row < kRows; ++row) {
      codec.encode(rows.data() + int64_t{row} * kDim, kDim, tile_of(row), row % tile.tokens);
    }
  }
  TileRun block(int first) { return {tile_of(first), first % tile.tokens, kBlock}; }

  const Codec& codec;
  TileSpec tile;
  std::vector<float> rows, q, s, o, scratch;
  Buffer tiles;
};

void count_rows(benchmark::State& state, const Head& head) {
  state.SetItemsProcessed(state.iterations() * kRows);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(head.tiles.size()));
}

void encode(benchmark::State& state, const Codec& codec) {
  Head head(codec);
  for (auto _ : state) {
    head.encode();
    benchmark::ClobberMemory();
  }
  count_rows(state, head);
}

void decode(benchmark::State& state, const Codec& codec) {
  Head head(codec);
  for (auto _ : state) {
    for (int row = 0; row < kRows; ++row) {
      codec.decode(head.tile_of(row), row % head.tile.tokens, kDim, head.scratch.data());
    }
    benchmark::ClobberMemory();
  }
  count_rows(state, head);
}

void scores(benchmark::State& state, const Codec& codec) {
  Head head(codec);
  for (auto _ : state) {
    for (int first = 0; first < kRows; first += kBlock) {
      codec.scores(head.q.data(), kDim, kQueries, kDim, head.block(first), head.s.data(), kBlock,
                   head.scratch.data());
    }
    benchmark::ClobberMemory();
  }
  count_rows(state, head);
}

void accumulate(benchmark::State& state, const Codec& codec) {
  Head head(codec);
  for (auto _ : state) {
    for (int first = 0; first < kRows; first += kBlock) {
      codec.accumulate(head.s.data(), kBlock, kQueries, kDim, head.block(first), head.o.data(),
                       kDim, head.scratch.data());
    }
    benchmark::ClobberMemory();
  }
  count_rows(state, head);
}

// y = W · x, one row, W of d_model 2048, on one thread: what a decode step does most.
void gemv(benchmark::State& state, WeightType type) {
  constexpr int kSize = 2048;
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool);
  const std::vector<float> values = normal_values(kSize);
  const Weight w = backend->load(
      kSize, kSize, type, [&](int, float* out) { std::copy(values.begin(), values.end(), out); });
  const Tensor x = backend->alloc(1, kSize);
  const Tensor y = backend->alloc(1, kSize);
  std::copy(values.begin(), values.end(), x.data);
  for (auto _ : state) {
    backend->matmul(x, w, nullptr, y);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * w.bytes());
}

void register_all() {
  using Kernel = void (*)(benchmark::State&, const Codec&);
  const std::pair<const char*, Kernel> kernels[] = {
      {"encode", encode}, {"decode", decode}, {"scores", scores}, {"accumulate", accumulate}};
  for (const auto& [name, kernel] : kernels) {
    for (const Codec& codec : codecs()) {
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}", name, codec.name).c_str(),
          [kernel = kernel, &codec](benchmark::State& state) { kernel(state, codec); });
    }
  }
  const std::pair<const char*, WeightType> types[] = {{"gemv/f32", WeightType::f32},
                                                      {"gemv/f16", WeightType::f16},
                                                      {"gemv/bf16", WeightType::bf16}};
  for (const auto& [name, type] : types) {
    benchmark::RegisterBenchmark(name,
                                 [type = type](benchmark::State& state) { gemv(state, type); });
  }
}

}  // namespace
}  // namespace kvmark

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("simd", std::string(kvmark::simd_target()));
  kvmark::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
