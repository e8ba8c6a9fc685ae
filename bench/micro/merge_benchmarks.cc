// Merging the softmax states of a head's splits, as one thread does after they were worked on
// apart.
#include <fmt/format.h>

#include <algorithm>

#include "bench/micro/benchmarks.h"
#include "bench/record/clock.h"
#include "engines/attention/softmax.h"
#include "engines/codecs/simd.h"

namespace kvmark {
namespace {

// The partial attention of one query over `splits` splits, in the caches; their own read ceiling.
class Splits {
 public:
  Splits(int splits, int head_dim, ThreadPool& pool)
      : splits_(splits),
        head_dim_(head_dim),
        maxima_(normal_values(splits)),
        outputs_(normal_values(int64_t{splits} * head_dim)),
        total_(head_dim),
        ceiling_(pool, bytes()) {}

  int64_t bytes() const {
    return splits_ * static_cast<int64_t>(sizeof(AttentionState) + head_dim_ * sizeof(float));
  }
  ReadCeiling& ceiling() { return ceiling_; }

  void merge() {
    AttentionState state{maxima_[0], 1.0f};
    std::copy_n(outputs_.begin(), head_dim_, total_.begin());
    for (int i = 1; i < splits_; ++i) {
      const float* output = outputs_.data() + int64_t{i} * head_dim_;
      kernels_.merge(state, total_.data(), {maxima_[i], 1.0f}, output, head_dim_);
    }
    benchmark::DoNotOptimize(state);
    benchmark::ClobberMemory();
  }

 private:
  const SoftmaxKernels kernels_ = softmax_kernels(chosen_simd_target());
  int splits_, head_dim_;
  std::vector<float> maxima_;   // (splits)
  std::vector<float> outputs_;  // (splits, head_dim)
  std::vector<float> total_;    // (head_dim)
  ReadCeiling ceiling_;
};

void merge(benchmark::State& state, Splits& splits) {
  constexpr int kRepeats = 1000;  // long enough for a clock
  time_reads(state, splits.ceiling(), kRepeats * splits.bytes(), [&] {
    const int64_t start = now_ns();
    for (int i = 0; i < kRepeats; ++i) splits.merge();
    return 1e-9 * static_cast<double>(now_ns() - start);
  });
}

}  // namespace

void register_merge_benchmarks(Lab& lab) {
  Machine& machine = *lab.machines().front();
  for (const int head_dim : {64, 128}) {
    for (const int splits : {8, 128}) {
      lab.add(
          fmt::format("merge/d{}/{}/t{}", head_dim, splits, machine.threads()),
          [=, &machine] { return std::make_unique<Splits>(splits, head_dim, machine.pool()); },
          merge);
    }
  }
}

}  // namespace kvmark
