// What every engine of the registry must hold: outputs that are right, and the same bits however
// the rows came, in whatever company, wherever they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/core/check.h"
#include "engines/cpu/cpu_engine_harness.h"

namespace kvmark::testing {
namespace {

class EveryEngine : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryEngine, ::testing::ValuesIn(engine_names()), test_name);

// Short depths too, one by one: a wrong position must not hide behind a lossy format.
TEST_P(EveryEngine, AgreesWithItsStoredRows) {
  Harness h(GetParam());
  const SeqId decoded = h.open();
  for (int i = 0; i < 34; ++i) {
    h.append(decoded, tokens(1, i, 1));
    ASSERT_LE(h.worst_error(), h.engine().tolerance()) << "at depth " << i + 1;
  }
  h.append(decoded, tokens(1, 34, 71));
  const SeqId prefilled = h.open();
  h.append(prefilled, tokens(2, 0, 129));
  h.step({{decoded, tokens(1, 105, 3)}, {prefilled, tokens(2, 129, 1)}});
  EXPECT_LE(h.worst_error(), h.engine().tolerance());
  EXPECT_GT(h.worst_error(), 0);  // the oracle did look
}

TEST_P(EveryEngine, RowInABatchIsTheRowAlone) {
  const int prior[] = {0, 1, 16, 33};
  const int added[] = {1, 3, 17, 40};
  for (int shift = 0; shift < 4; ++shift) {
    Harness batch(GetParam());
    std::vector<Append> appends;
    for (int i = 0; i < 4; ++i) {
      const SeqId seq = batch.open();
      const int before = prior[(i + shift) % 4];
      if (before > 0) batch.append(seq, tokens(i, 0, before));
      appends.push_back({seq, tokens(i, before, added[i])});
    }
    const auto together = batch.step(appends);
    for (int i = 0; i < 4; ++i) {
      const int before = prior[(i + shift) % 4];
      const auto alone = fresh_outputs(GetParam(), tokens(i, 0, before + added[i]));
      ASSERT_TRUE(
          same_bits(together[static_cast<size_t>(i)], rows_from(alone, before, batch.spec())))
          << before << " + " << added[i];
    }
  }
}

TEST_P(EveryEngine, PrefillCutAnywhereIsTheWhole) {
  const Tokens all = tokens(1, 0, 16);
  const auto whole = fresh_outputs(GetParam(), all);
  for (int cut = 1; cut < 16; ++cut) {
    Harness h(GetParam());
    const SeqId seq = h.open();
    h.append(seq, tokens(1, 0, cut));
    ASSERT_TRUE(same_bits(h.append(seq, tokens(1, cut, 16 - cut)), rows_from(whole, cut, h.spec())))
        << "cut at " << cut;
  }
}

TEST_P(EveryEngine, PrefillInPiecesIsTheWhole) {
  const auto whole = fresh_outputs(GetParam(), tokens(1, 0, 70));
  for (const int piece : {1, 2, 5, 31, 33}) {
    Harness h(GetParam());
    const SeqId seq = h.open();
    for (int first = 0; first < 70; first += piece) {
      const int rows = std::min(piece, 70 - first);
      const auto part = h.append(seq, tokens(1, first, rows));
      std::vector<float> expected = rows_from(whole, first, h.spec());
      const size_t rest = expected.size() / 2;
      std::vector<float> firsts;
      for (size_t layer = 0; layer < 2; ++layer) {
        const auto from = expected.begin() + static_cast<std::ptrdiff_t>(layer * rest);
        firsts.insert(firsts.end(), from, from + static_cast<std::ptrdiff_t>(part.size() / 2));
      }
      ASSERT_TRUE(same_bits(part, firsts)) << "pieces of " << piece << ", from " << first;
    }
  }
}

TEST_P(EveryEngine, ThreadsDoNotShow) {
  const auto run = [&](int threads) {
    Harness h(GetParam(), odd_spec(), threads);
    const SeqId a = h.open();
    const SeqId b = h.open();
    auto outputs = h.append(a, tokens(1, 0, 90));
    for (const auto& more : h.step({{b, tokens(2, 0, 35)}, {a, tokens(1, 90, 1)}})) {
      outputs.insert(outputs.end(), more.begin(), more.end());
    }
    return outputs;
  };
  const auto one = run(1);
  EXPECT_TRUE(same_bits(one, run(2)));
  EXPECT_TRUE(same_bits(one, run(3)));
}

TEST_P(EveryEngine, PoisonIsNeverRead) {
  const auto run = [&](bool poison) {
    Harness h(GetParam(), odd_spec(), 1, {.poison = poison});
    std::vector<float> all;
    const auto keep = [&](const std::vector<std::vector<float>>& outputs) {
      for (const auto& part : outputs) all.insert(all.end(), part.begin(), part.end());
    };
    const SeqId a = h.open();
    const SeqId b = h.open();
    keep(h.step({{a, tokens(1, 0, 37)}, {b, tokens(2, 0, 3)}}));
    h.rolled_back_step({{a, tokens(3, 0, 20)}});
    h.truncate(a, 21);
    keep(h.step({{a, tokens(4, 0, 18)}}));
    const SeqId c = h.fork(a, 35);
    keep(h.step({{a, tokens(5, 0, 2)}, {c, tokens(6, 0, 2)}}));
    h.close(a);
    const SeqId d = h.open();
    keep(h.step({{d, tokens(7, 0, 50)}, {c, tokens(6, 2, 1)}, {b, tokens(2, 3, 30)}}));
    return all;
  };
  const auto poisoned = run(true);
  EXPECT_TRUE(
      std::all_of(poisoned.begin(), poisoned.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_TRUE(same_bits(poisoned, run(false)));
}

TEST_P(EveryEngine, ShuffledPoolDoesNotShow) {
  const auto run = [&](const CpuEngineOptions& options) {
    Harness h(GetParam(), odd_spec(), 1, options);
    const SeqId first = h.open();
    h.append(first, tokens(9, 0, 23));  // so that the others start at another physical slot
    const SeqId a = h.open();
    h.append(a, tokens(1, 0, 50));
    h.close(first);
    return h.append(a, tokens(1, 50, 45));
  };
  const auto fresh = run({});
  EXPECT_TRUE(same_bits(fresh, run({.pool_order = PoolOrder::shuffled, .seed = 1})));
  EXPECT_TRUE(same_bits(fresh, run({.pool_order = PoolOrder::shuffled, .seed = 2})));
  EXPECT_TRUE(
      same_bits(fresh, rows_from(fresh_outputs(GetParam(), tokens(1, 0, 95)), 50, odd_spec())));
}

TEST_P(EveryEngine, LastAndNoneAreTheSameRows) {
  const auto whole = fresh_outputs(GetParam(), tokens(1, 0, 41));
  Harness h(GetParam());
  const SeqId a = h.open();
  h.fill({{a, tokens(1, 0, 30)}});
  const auto last = h.step_last({{a, tokens(1, 30, 11)}});
  EXPECT_TRUE(same_bits(last[0], rows_from(whole, 40, h.spec())));
  EXPECT_LE(h.worst_error(), h.engine().tolerance());
}

TEST_P(EveryEngine, WhatIsNotFiniteIsNotStored) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Harness h(GetParam());
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 20));
  for (const float value : {kInf, -kInf, kNan}) {
    for (const bool in_v : {false, true}) {
      const Footprint before = h.engine().footprint();
      h.spoil(value, in_v);
      EXPECT_THROW(h.append(a, tokens(2, 0, 3)), RuntimeError);
      EXPECT_EQ(h.engine().seen(a), 20);
      EXPECT_EQ(h.engine().footprint().live_bytes, before.live_bytes);
      EXPECT_EQ(h.engine().footprint().saturated, before.saturated);
    }
  }
  const auto after = h.append(a, tokens(1, 20, 15));
  EXPECT_TRUE(
      same_bits(after, rows_from(fresh_outputs(GetParam(), tokens(1, 0, 35)), 20, h.spec())));
}

// V = g for KV head g comes back as h / (heads / kv_heads): 9:3 would hide a wrong divisor.
class Probe : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, Probe, ::testing::ValuesIn(engine_names()), test_name);

TEST_P(Probe, QueryHeadsReadTheirKvHead) {
  const std::pair<int, int> ratios[] = {{1, 1}, {4, 4}, {8, 2}, {9, 3}, {6, 1}, {12, 4}, {10, 2}};
  for (const auto& [heads, kv_heads] : ratios) {
    KvSpec spec = odd_spec();
    spec.layers = 1;
    spec.heads = heads;
    spec.kv_heads = kv_heads;
    ThreadPool pool(1);
    const auto engine = make_cpu_engine(parse_engine(GetParam()), spec, pool);
    const SeqId seq = engine->open();
    constexpr int kRows = 40;
    std::vector<float> q(static_cast<size_t>(kRows * heads * spec.k_dim), 0.3f);
    std::vector<float> k(static_cast<size_t>(kRows * kv_heads * spec.k_dim), 0.7f);
    std::vector<float> v(static_cast<size_t>(kRows * kv_heads * spec.v_dim));
    std::vector<float> out(static_cast<size_t>(kRows * heads * spec.v_dim));
    for (size_t i = 0; i < v.size(); ++i) {
      v[i] = static_cast<float>(static_cast<int>(i) / spec.v_dim % kv_heads);
    }
    const std::vector<Piece> pieces = {{seq, 0, kRows}};
    ASSERT_FALSE(engine->begin(pieces));
    engine->attend(0, Outputs::all, {q.data(), kRows, heads * spec.k_dim},
                   {k.data(), kRows, kv_heads * spec.k_dim},
                   {v.data(), kRows, kv_heads * spec.v_dim},
                   {out.data(), kRows, heads * spec.v_dim});
    engine->commit();
    const double allowed = engine->stored_bound().v.of(1) + 1e-5;
    for (size_t i = 0; i < out.size(); ++i) {
      const int head = static_cast<int>(i) / spec.v_dim % heads;
      const int expected = head / (heads / kv_heads);
      ASSERT_NEAR(out[i], expected, allowed * std::max(1, expected))
          << heads << ":" << kv_heads << ", head " << head;
    }
  }
}

}  // namespace
}  // namespace kvmark::testing
