#include "bench/run/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/run/workload_testing.h"
#include "engines/core/affinity.h"

namespace kvmark {
namespace {

TEST(SampledSteps, HoldTheFirstTheLastAndNoMoreThanAsked) {
  EXPECT_EQ(sampled_steps(1, 12), std::vector<int>({0}));
  EXPECT_EQ(sampled_steps(2, 12), std::vector<int>({0, 1}));
  EXPECT_EQ(sampled_steps(5, 3), std::vector<int>({0, 2, 4}));
  EXPECT_EQ(sampled_steps(511, 12).size(), 12u);
  EXPECT_EQ(sampled_steps(511, 12).back(), 510);
}

TEST(Digest, DiffersByOneBit) {
  const float a[] = {1.0f, 2.0f}, b[] = {1.0f, std::nextafter(2.0f, 3.0f)};
  Digest one, same, other;
  one.add(a, 2), same.add(a, 2), other.add(b, 2);
  EXPECT_EQ(one.hex(), same.hex());
  EXPECT_NE(one.hex(), other.hex());
}

TEST(Workload, CountsPositionsThatWereComputed) {
  Workload recompute(tiny_case("recompute", 0, 100), 4), cached(tiny_case("contiguous", 0, 100), 4);
  EXPECT_EQ(recompute.round().positions_computed, 100 * 101 / 2);
  EXPECT_EQ(cached.round().positions_computed, 100);
}

TEST(Workload, AThousandTokensFromAnEmptyStart) {
  Case c = tiny_case("recompute", 0, 1000);
  c.model.layers = 1;
  c.threads = 2;
  EXPECT_EQ(Workload(c, 0).round().positions_computed, 500500);
  c.engine = parse_engine("contiguous");
  EXPECT_EQ(Workload(c, 0).round().positions_computed, 1000);
}

TEST(Workload, CommitsWhatTheFormulaSays) {
  for (const int prompt : {0, 1, 37}) {
    const Case c = tiny_case("contiguous/f16", prompt, 9);
    Workload workload(c, 2);
    const Footprint footprint = workload.round().footprint;
    const int64_t row = 2 * int64_t{c.model.kv_heads} * c.model.head_dim * 2;
    EXPECT_EQ(footprint.live_bytes, c.committed() * c.model.layers * row);
  }
}

// Engines that keep rows, engines that keep none, both levels, prompts and none, batches.
class RoundTest : public testing::TestWithParam<std::string> {};

TEST_P(RoundTest, HasTheDigestOfItsRehearsalEveryTime) {
  for (const int prompt : {0, 40}) {
    for (const int batch : {1, 3}) {
      Case c = tiny_case(GetParam(), prompt, 30);
      c.batch = batch;
      Case attention = tiny_attention_case(GetParam(), prompt, 30);
      attention.batch = batch;
      for (const Case& level : {c, attention}) {
        Workload workload(level, 5);
        const std::string rehearsed = workload.rehearse(nullptr);
        EXPECT_EQ(workload.round().digest, rehearsed);
        EXPECT_EQ(workload.round().digest, rehearsed);
      }
    }
  }
}

TEST_P(RoundTest, GreedyDecodingRepeatsItself) {
  Case c = tiny_case(GetParam(), 12, 30);
  c.tokens = TokenMode::greedy;
  Workload workload(c, 20);  // settle steps run past the prompt
  const std::string rehearsed = workload.rehearse(nullptr);
  EXPECT_EQ(workload.round().digest, rehearsed);
  EXPECT_EQ(workload.round().digest, rehearsed);
}

INSTANTIATE_TEST_SUITE_P(Engines, RoundTest,
                         testing::Values("recompute", "contiguous", "paged", "fp16", "compressed"));

TEST(Workload, TheSameTokensAndOutputsInEveryExactEngine) {
  const std::string digest = Workload(tiny_case("contiguous", 20, 10), 0).round().digest;
  EXPECT_EQ(Workload(tiny_case("paged:16", 20, 10), 0).round().digest, digest);
  EXPECT_EQ(Workload(tiny_case("paged:48", 20, 10), 0).round().digest, digest);
  EXPECT_NE(Workload(tiny_case("contiguous/f16", 20, 10), 0).round().digest, digest);
}

TEST(Workload, PinnedThreadsComputeTheSame) {
  const std::vector<int> cpus = allowed_cpus();
  Case c = tiny_case("contiguous", 20, 10);
  c.threads = 2;
  const std::string digest = Workload(c, 0).round().digest;
  c.pin = true;
  {
    Workload pinned(c, 0);
    EXPECT_EQ(allowed_cpus().size(), 1u);
    EXPECT_EQ(pinned.round().digest, digest);
  }
  EXPECT_EQ(allowed_cpus(), cpus);
}

TEST(Workload, RepeatedHeadsCostBytesAndChangeNothing) {
  for (const int batch : {1, 3}) {
    for (const bool model : {false, true}) {
      Case c = model ? tiny_case("contiguous", 20, 10) : tiny_attention_case("contiguous", 20, 10);
      c.batch = batch;
      const RoundSamples stored_once = Workload(c, 0).round();
      c.repeat_kv = true;
      const RoundSamples repeated = Workload(c, 0).round();
      EXPECT_EQ(repeated.digest, stored_once.digest);
      EXPECT_EQ(repeated.footprint.live_bytes, 2 * stored_once.footprint.live_bytes);
    }
  }
}

TEST(Workload, ASequenceOfABatchIsTheSameAsInAnother) {
  // Rows of several sequences lie interleaved; each must still be its own.
  class FirstSequence : public StepObserver {
   public:
    std::vector<float> outputs;
    void attended(int, Outputs wanted, std::span<const Piece> pieces, Tensor, Tensor, Tensor,
                  Tensor out) override {
      if (wanted == Outputs::none) return;
      const int row = wanted == Outputs::all ? pieces[0].rows - 1 : 0;
      outputs.insert(outputs.end(), out.row(row), out.row(row) + out.cols);
    }
  };
  for (const char* engine : {"contiguous", "recompute"}) {
    Case c = tiny_attention_case(engine, 20, 6);
    FirstSequence alone, in_batch;
    Workload(c, 0).rehearse(&alone);
    c.batch = 3;
    Workload(c, 0).rehearse(&in_batch);
    ASSERT_FALSE(alone.outputs.empty());
    EXPECT_EQ(alone.outputs, in_batch.outputs) << engine;
  }
}

TEST(Workload, TimesEveryDecodeStepAndItsAttention) {
  Workload workload(tiny_case("contiguous", 8, 12), 3);
  const RoundSamples samples = workload.round();
  ASSERT_EQ(samples.itl_ms.size(), 11u);
  ASSERT_EQ(samples.attend_ms.size(), 11u);
  EXPECT_GT(samples.first_token_ms, 0);
  double sum = 0;
  for (size_t i = 0; i < samples.itl_ms.size(); ++i) {
    EXPECT_GT(samples.attend_ms[i], 0);
    EXPECT_LT(samples.attend_ms[i], samples.itl_ms[i]);
    sum += samples.itl_ms[i];
  }
  double phases = 0;
  for (const auto& [name, ms] : samples.profile.items()) phases += ms.get<double>();
  EXPECT_NEAR(phases, sum / 11, 0.05 * sum / 11);
}

TEST(Workload, AGrowingCacheGrowsInEveryRound) {
  Workload workload(tiny_case("contiguous/f32/grow:2", 0, 200), 0);
  workload.rehearse(nullptr);
  const auto first = workload.round().events;
  const auto second = workload.round().events;
  ASSERT_EQ(first.size(), 2u);  // 64 → 128 → 256 positions
  EXPECT_EQ(second.size(), first.size());
}

TEST(Workload, TimelineGrowsAndIsBounded) {
  Workload workload(tiny_case("paged:16", 0, 500), 0);
  workload.rehearse(nullptr);
  const auto& timeline = workload.timeline();
  ASSERT_GT(timeline.size(), 10u);
  EXPECT_LE(timeline.size(), 66u);
  EXPECT_EQ(timeline.back().position, 500);
  for (size_t i = 1; i < timeline.size(); ++i) {
    EXPECT_GT(timeline[i].footprint.live_bytes, timeline[i - 1].footprint.live_bytes);
    EXPECT_GE(timeline[i].footprint.reserved_bytes, timeline[i].footprint.live_bytes);
  }
}

// Timing it would be a matter of luck; tests/e2e/ab_test.py has the gate find it.
TEST(Workload, ExtraWorkChangesNothingButTime) {
  for (const char* engine : {"contiguous/f32", "recompute"}) {
    const Case c = tiny_case(engine, 4, 6);
    Workload plain(c, 2), slowed(c, 2, 0.5);
    const RoundSamples expected = plain.round();
    for (int round = 0; round < 2; ++round) {
      const RoundSamples samples = slowed.round();
      EXPECT_EQ(samples.digest, expected.digest);
      EXPECT_EQ(samples.itl_ms.size(), expected.itl_ms.size());
      EXPECT_EQ(samples.positions_computed, expected.positions_computed);
    }
  }
}

TEST(ExtraWork, IsDueUntilItIsCalibrated) {
  ExtraWork none(0), some(0.05);
  EXPECT_FALSE(none.due());
  none.run();
  EXPECT_TRUE(some.due());
  some.calibrate(0.01);
  EXPECT_FALSE(some.due());
  some.run();
}

}  // namespace
}  // namespace kvmark
