// kvmark_micro: micro-benchmarks of the kernels; bench/micro/benchmarks.h says how they are named.
//
// build/bin/kvmark_micro --benchmark_filter='^attend/int8:g32/contiguous/d64/g4/16384/t1/'
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "bench/micro/benchmarks.h"
#include "engines/codecs/codec.h"

namespace kvmark {
namespace {

constexpr int kExitFailed = 1, kExitUsage = 2;

int run(int argc, char** argv) {
  // 1. What is asked for: Google Benchmark takes its flags out of the command line.
  benchmark::Initialize(&argc, argv);
  int64_t working_set_mib = 512;
  CLI::App app{"Micro-benchmarks of the kernels; flags of Google Benchmark choose which."};
  app.add_option("--working-set-mib", working_set_mib,
                 "MiB that attend, append and gemv walk over; 512, more than any cache")
      ->check(CLI::Range(1, 1 << 20));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  }

  // 2. What there is.
  Lab lab(working_set_mib << 20);
  register_cache_benchmarks(lab);
  register_dense_benchmarks(lab);
  register_merge_benchmarks(lab);
  benchmark::AddCustomContext("openblas_core", openblas_get_corename());
  benchmark::AddCustomContext("simd", std::string(simd_target()));
  benchmark::AddCustomContext("working_set_mib", std::to_string(working_set_mib));

  // 3. What runs.
  const std::string filter = benchmark::GetBenchmarkFilter();
  const size_t matched =
      benchmark::RunSpecifiedBenchmarks(filter.empty() ? lab.default_filter() : filter);
  return matched > 0 ? 0 : kExitUsage;
}

}  // namespace
}  // namespace kvmark

int main(int argc, char** argv) {
  try {
    return kvmark::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "kvmark_micro: " << e.what() << "\n";
    return kvmark::kExitFailed;
  }
}
