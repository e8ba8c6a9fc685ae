// Sequences that are cut, forked, closed, reused and rolled back equal fresh ones, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_engine_harness.h"

namespace kvmark::testing {
namespace {

class Sequences : public ::testing::TestWithParam<std::string> {
 protected:
  // Appending `more` to `seq` gives what a fresh engine gives for the whole content.
  void expect_fresh(Harness& h, SeqId seq, const Tokens& more) const {
    const auto before = static_cast<int>(h.content(seq).size());
    const Tokens all = joined(h.content(seq), more);
    EXPECT_TRUE(same_bits(h.append(seq, more),
                          rows_from(fresh_outputs(GetParam(), all), before, h.spec())));
  }
};
INSTANTIATE_TEST_SUITE_P(Registry, Sequences, ::testing::ValuesIn(engine_names()), test_name);

TEST_P(Sequences, TruncateAndAppendIsFresh) {
  constexpr int kLength = 37;
  for (const int kept : {0, 1, 16, kLength - 1, kLength}) {
    Harness h(GetParam());
    const SeqId a = h.open();
    h.append(a, tokens(1, 0, kLength));
    h.truncate(a, kept);
    ASSERT_EQ(h.engine().seen(a), kept);
    expect_fresh(h, a, tokens(2, 0, 1));
    expect_fresh(h, a, tokens(2, 1, 30));
  }
}

TEST_P(Sequences, ForksDivergeIndependently) {
  for (const int at : {0, 1, 16, 21, 37}) {
    Harness h(GetParam());
    const SeqId a = h.open();
    h.append(a, tokens(1, 0, 37));
    const SeqId b = h.fork(a, at);
    ASSERT_EQ(h.engine().seen(b), at);
    for (int i = 0; i < 20; ++i) {  // in one step: both write behind the shared rows
      h.step({{a, tokens(2, i, 1)}, {b, tokens(3, i, 1)}});
    }
    expect_fresh(h, a, tokens(2, 20, 1));
    expect_fresh(h, b, tokens(3, 20, 1));
  }
}

TEST_P(Sequences, ForkOutlivesItsParent) {
  Harness h(GetParam());
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 37));
  const SeqId b = h.fork(a, 37);
  const SeqId c = h.fork(b, 20);
  h.truncate(a, 5);
  h.append(a, tokens(4, 0, 40));
  h.close(a);
  h.append(h.open(), tokens(5, 0, 60));
  expect_fresh(h, b, tokens(2, 0, 10));
  expect_fresh(h, c, tokens(3, 0, 10));
}

TEST_P(Sequences, CloseAndOpenIsFresh) {
  Harness h(GetParam());
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 60));
  h.close(a);
  const SeqId b = h.open();
  EXPECT_EQ(b, a);
  EXPECT_EQ(h.engine().seen(b), 0);
  expect_fresh(h, b, tokens(2, 0, 35));
}

TEST_P(Sequences, OthersMoveIntoClosedPlaces) {
  Harness h(GetParam());
  std::vector<SeqId> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(h.open());
    h.append(ids.back(), tokens(i, 0, 17 + 9 * i));
  }
  h.close(ids[1]);
  h.close(ids[3]);
  const SeqId x = h.open();
  const SeqId y = h.open();
  h.step({{x, tokens(10, 0, 50)}, {y, tokens(11, 0, 20)}});
  for (const SeqId seq : {ids[0], x, ids[2], y, ids[4]}) {
    expect_fresh(h, seq, tokens(20 + seq, 0, 18));
  }
}

TEST_P(Sequences, RollbackLeavesTheEngineAsItWas) {
  Harness h(GetParam());
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 37));
  const SeqId b = h.fork(a, 33);
  const Footprint before = h.engine().footprint();
  const bool keeps = h.engine().next(a) > 0;
  const auto stored_a = keeps ? h.stored(a) : std::vector<float>();
  const auto stored_b = keeps ? h.stored(b) : std::vector<float>();
  h.rolled_back_step({{a, tokens(2, 0, 20)}, {b, tokens(3, 0, 9)}});
  EXPECT_EQ(h.engine().seen(a), 37);
  EXPECT_EQ(h.engine().footprint().live_bytes, before.live_bytes);
  EXPECT_EQ(h.engine().footprint().blocks_used, before.blocks_used);
  if (keeps) {
    EXPECT_TRUE(same_bits(h.stored(a), stored_a));
    EXPECT_TRUE(same_bits(h.stored(b), stored_b));
  }
  expect_fresh(h, a, tokens(4, 0, 20));
  expect_fresh(h, b, tokens(5, 0, 20));
}

// Random append / truncate / fork / close / rollback against plain lists of tokens.
TEST_P(Sequences, MatchPlainListsUnderRandomUse) {
  Harness h(GetParam(), odd_spec(), 1, {.pool_order = PoolOrder::shuffled, .poison = true});
  std::mt19937 random(5);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  int stream = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<SeqId> ids;
    for (const auto& [seq, content] : h.contents()) ids.push_back(seq);
    const bool room = ids.size() < 5;
    const int what = draw(8);
    if (ids.empty() || (what == 0 && room)) {
      h.open();
      continue;
    }
    const SeqId seq = ids[static_cast<size_t>(draw(static_cast<int>(ids.size())))];
    const auto length = static_cast<int>(h.content(seq).size());
    if (what == 1 && room) {
      h.fork(seq, draw(length + 1));
    } else if (what == 2 && draw(3) == 0) {
      h.close(seq);
    } else if (what == 3) {
      h.truncate(seq, draw(length + 1));
    } else {
      std::vector<Append> appends;
      for (const SeqId id : ids) {
        const int left = h.spec().max_len - static_cast<int>(h.content(id).size());
        const int rows = std::min(draw(20), left);
        if (rows > 0) appends.push_back({id, tokens(++stream, 0, rows)});
      }
      if (appends.empty()) continue;
      if (what == 4) {
        h.rolled_back_step(appends);
      } else {
        h.step(appends);
      }
    }
    ASSERT_LE(h.worst_error(), h.engine().tolerance()) << "after " << i;
    const Footprint f = h.engine().footprint();
    ASSERT_EQ(f.live_bytes, f.payload_bytes + f.scale_bytes);
    for (const auto& [id, content] : h.contents()) {
      ASSERT_EQ(h.engine().seen(id), static_cast<int>(content.size()));
    }
  }
  for (const auto& [seq, content] : std::map<SeqId, Tokens>(h.contents())) {
    if (static_cast<int>(content.size()) < h.spec().max_len) {
      expect_fresh(h, seq, tokens(++stream, 0, 1));
    }
  }
}

// Blocks do not show: every size, and lengths around their ends, equals one contiguous piece.
class Blocks : public ::testing::TestWithParam<std::string> {};
std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const Codec& codec : codecs()) names.emplace_back(codec.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Registry, Blocks, ::testing::ValuesIn(codec_names()), test_name);

TEST_P(Blocks, SizesAndEndsDoNotShow) {
  const auto whole = fresh_outputs("contiguous/" + GetParam(), tokens(1, 0, 131));
  const int rows = find_codec(GetParam())->k.tile(64).tokens;  // that a block holds at least
  for (const int block : {1, 2, 3, 16, 17, 48, 64}) {
    if (block % rows != 0) continue;
    const std::string paged = fmt::format("paged:{}/{}", block, GetParam());
    for (const int multiple : {1, 2}) {
      for (const int beside : {-1, 0, 1}) {
        const int prompt = multiple * block + beside;
        if (prompt < 1) continue;
        Harness h(paged);
        const SeqId seq = h.open();
        h.append(seq, tokens(1, 0, prompt));
        h.append(seq, tokens(1, prompt, 1));
        const auto rest = h.append(seq, tokens(1, prompt + 1, 131 - prompt - 1));
        ASSERT_TRUE(same_bits(rest, rows_from(whole, prompt + 1, h.spec())))
            << paged << " after a prompt of " << prompt;
      }
    }
  }
}

TEST_P(Blocks, GrowthKeepsEveryLayer) {
  Harness still("contiguous/" + GetParam());
  Harness growing(fmt::format("contiguous/{}/grow:1.3", GetParam()));
  const SeqId a = still.open();
  const SeqId b = growing.open();
  for (int first = 0; first < 150; first += 10) {
    ASSERT_TRUE(
        same_bits(still.append(a, tokens(1, first, 10)), growing.append(b, tokens(1, first, 10))));
  }
  EXPECT_TRUE(same_bits(still.stored(a), growing.stored(b)));
  const auto events = growing.engine().take_events();
  ASSERT_EQ(events.size(), 4u);  // 64 → 84 → 110 → 143 → 150
  for (const Event& event : events) EXPECT_EQ(event.kind, "grow");
  EXPECT_TRUE(growing.engine().take_events().empty());
}

TEST(PagedEngine, CopiesOnWriteOnlyWhatIsShared) {
  Harness h("paged:16/f32");
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 40));
  EXPECT_EQ(h.engine().footprint().blocks_used, 3);
  const SeqId b = h.fork(a, 40);
  EXPECT_EQ(h.engine().footprint().blocks_used, 3);
  h.append(b, tokens(2, 0, 1));
  EXPECT_EQ(h.engine().footprint().blocks_used, 4);
  const auto events = h.engine().take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "copy_on_write");
  EXPECT_EQ(events[0].seq, b);
  h.append(a, tokens(3, 0, 1));  // the block is its own again
  EXPECT_TRUE(h.engine().take_events().empty());
  h.close(a);
  h.close(b);
  EXPECT_EQ(h.engine().footprint().blocks_used, 0);
  EXPECT_EQ(h.engine().footprint().blocks_free, 4);
}

TEST(RecomputeEngine, HoldsOnlyTheLayerAttendedLast) {
  Harness h("recompute");
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 9));
  EXPECT_EQ(h.engine().next(a), 0);
  EXPECT_EQ(h.engine().seen(a), 9);
  std::vector<float> memory(4096);
  const Tensor k{memory.data(), 9, 2 * 40}, v{memory.data(), 9, 2 * 24};
  h.engine().read(a, 1, 0, 9, k, v);
  EXPECT_THROW(h.engine().read(a, 0, 0, 9, k, v), LogicError);
  const SeqId b = h.open();
  h.append(b, tokens(2, 0, 3));
  EXPECT_THROW(h.engine().read(a, 1, 0, 9, k, v), LogicError);
}

}  // namespace
}  // namespace kvmark::testing
