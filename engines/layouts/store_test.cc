// The three row stores by their addresses alone: no codec, no attention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "engines/layouts/contiguous_store.h"
#include "engines/layouts/paged_store.h"
#include "engines/layouts/workspace_store.h"

namespace kvmark {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows of one 64-bit number: with 2 heads and K and V, a slot is 32 bytes.
StoreSpec number_spec(int max_seqs, int max_len) {
  StoreSpec spec;
  spec.layers = 2;
  spec.kv_heads = 2;
  spec.k = spec.v = {.tokens = 1, .bytes = 8, .align = 8};
  spec.max_seqs = max_seqs;
  spec.max_len = max_len;
  spec.max_rows = 64;
  return spec;
}

uint64_t number_at(const std::byte* tile) {
  uint64_t number;
  std::memcpy(&number, tile, sizeof number);
  return number;
}

// Writes `number` plus something that tells layer, head and side apart into a row.
void write_row(const RowStore& store, int seq, int position, uint64_t number) {
  for (int layer = 0; layer < 2; ++layer) {
    const Span span = store.rows(seq, layer, position + 1);
    const int slot = span.first_slot + position;
    for (int head = 0; head < 2; ++head) {
      const uint64_t tag = number * 8 + static_cast<uint64_t>(layer * 4 + head * 2);
      const uint64_t value_tag = tag + 1;
      std::memcpy(const_cast<std::byte*>(span.k_tile(head, slot)), &tag, sizeof tag);
      std::memcpy(const_cast<std::byte*>(span.v_tile(head, slot)), &value_tag, sizeof value_tag);
    }
  }
}

::testing::AssertionResult holds(const RowStore& store, int seq,
                                 const std::vector<uint64_t>& numbers) {
  for (int layer = 0; layer < 2; ++layer) {
    const Span span = store.rows(seq, layer, static_cast<int>(numbers.size()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      for (int head = 0; head < 2; ++head) {
        const uint64_t tag = numbers[i] * 8 + static_cast<uint64_t>(layer * 4 + head * 2);
        const int slot = span.first_slot + static_cast<int>(i);
        if (number_at(span.k_tile(head, slot)) != tag ||
            number_at(span.v_tile(head, slot)) != tag + 1) {
          return ::testing::AssertionFailure()
                 << "sequence " << seq << ", layer " << layer << ", head " << head << ", row " << i;
        }
      }
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(PagedStore, TakesBlocksOnDemandAndCountsThem) {
  PagedStore store(number_spec(2, 10), 4, std::nullopt);
  const int64_t table = 2 * 3 * 4;
  EXPECT_EQ(store.held().reserved, table);
  store.open(0);
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 0, 5}}));
  store.commit();
  EXPECT_THAT(store.table(0), ElementsAre(0, 1, -1));
  EXPECT_THAT(store.table(1), Each(-1));
  EXPECT_EQ(store.held().blocks_used, 2);
  EXPECT_EQ(store.held().reserved, 2 * 2 * 4 * 32 + table);
  store.close(0);
  EXPECT_THAT(store.table(0), Each(-1));
  EXPECT_EQ(store.held().blocks_free, 2);
  EXPECT_EQ(store.held().reserved, 2 * 2 * 4 * 32 + table);  // kept for the next one
}

TEST(PagedStore, RefusesAStepThatTheBudgetDoesNotHold) {
  StoreSpec spec = number_spec(2, 12);
  spec.budget_bytes = PagedStore::table_bytes(spec, 4) + 3 * PagedStore::block_bytes(spec, 4);
  PagedStore store(spec, 4, std::nullopt);
  store.open(0);
  store.open(1);
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 0, 8}}));
  store.commit();
  const HeldBytes before = store.held();
  const auto refusal = store.begin(std::vector<Piece>{{1, 0, 4}, {0, 8, 1}});
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, HasSubstr("needs 2 more, 1 are free"));
  EXPECT_EQ(store.held().reserved, before.reserved);
  EXPECT_THAT(store.table(1), Each(-1));
  EXPECT_FALSE(store.begin(std::vector<Piece>{{1, 0, 4}}));
  EXPECT_LE(store.held().peak, spec.budget_bytes);
}

TEST(PagedStore, SaysSoWhenTheBudgetHoldsNoBlock) {
  StoreSpec spec = number_spec(1, 12);
  spec.budget_bytes = 100;
  PagedStore store(spec, 4, std::nullopt);
  EXPECT_THROW(store.open(0), RuntimeError);
}

TEST(PagedStore, TheLastOwnerWritesInPlace) {
  StoreSpec spec = number_spec(2, 4);  // two blocks in all: one copy fits, two would not
  PagedStore store(spec, 4, std::nullopt);
  store.open(0);
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 0, 2}}));
  write_row(store, 0, 0, 10);
  write_row(store, 0, 1, 11);
  store.commit();
  store.fork(0, 1, 2);
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 2, 1}, {1, 2, 1}}));
  write_row(store, 0, 2, 12);
  write_row(store, 1, 2, 13);
  EXPECT_TRUE(holds(store, 0, {10, 11, 12}));
  EXPECT_TRUE(holds(store, 1, {10, 11, 13}));
  store.rollback();
  EXPECT_EQ(store.table(0)[0], store.table(1)[0]);  // shared again
  EXPECT_EQ(store.held().blocks_used, 1);
  EXPECT_TRUE(holds(store, 0, {10, 11}));
  EXPECT_EQ(store.take_events().size(), 1u);
}

// The longest owner writes in place: behind everyone's rows, whatever the order of the pieces.
TEST(PagedStore, RollbackFindsTheRowsOfEveryOwner) {
  for (const bool longest_first : {false, true}) {
    PagedStore store(number_spec(3, 8), 4, std::nullopt);
    store.open(0);
    ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 0, 3}}));
    for (int i = 0; i < 3; ++i) write_row(store, 0, i, static_cast<uint64_t>(30 + i));
    store.commit();
    store.fork(0, 1, 1);
    store.fork(0, 2, 2);
    std::vector<Piece> pieces = {{0, 3, 2}, {1, 1, 4}, {2, 2, 1}};
    if (!longest_first) std::reverse(pieces.begin(), pieces.end());
    ASSERT_FALSE(store.begin(pieces));
    for (const Piece& piece : pieces) {
      for (int i = 0; i < piece.rows; ++i) write_row(store, piece.seq, piece.first + i, 99);
    }
    EXPECT_TRUE(holds(store, 1, {30, 99, 99, 99, 99}));
    EXPECT_EQ(store.held().blocks_used, 5);
    store.rollback();
    EXPECT_TRUE(holds(store, 0, {30, 31, 32}));
    EXPECT_TRUE(holds(store, 1, {30}));
    EXPECT_TRUE(holds(store, 2, {30, 31}));
    EXPECT_EQ(store.held().blocks_used, 1);
  }
}

TEST(ContiguousStore, ReservesAtOpenAndFreesAtClose) {
  const StoreSpec spec = number_spec(2, 10);
  ContiguousStore store(spec, [](int) { return 10; });
  EXPECT_EQ(store.held().reserved, 0);
  store.open(0);
  store.open(1);
  EXPECT_EQ(store.held().reserved, 2 * 2 * 320);
  store.close(0);
  EXPECT_EQ(store.held().reserved, 2 * 320);
  EXPECT_EQ(store.held().peak, 2 * 2 * 320);
}

TEST(ContiguousStore, MovesWithinTheBudgetOrNotAtAll) {
  StoreSpec spec = number_spec(2, 16);
  spec.budget_bytes = 2 * 4 * 32 * 2 + 2 * 8 * 32;  // two of 4 slots, and one of 8 beside them
  ContiguousStore store(spec, [](int rows) { return rows <= 4 ? 4 : rows <= 8 ? 8 : 16; });
  store.open(0);
  store.open(1);
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 0, 4}}));
  for (int i = 0; i < 4; ++i) write_row(store, 0, i, static_cast<uint64_t>(20 + i));
  store.commit();
  // Both moves do not fit: neither is done.
  ASSERT_TRUE(store.begin(std::vector<Piece>{{0, 4, 1}, {1, 0, 8}}));
  EXPECT_EQ(store.held().reserved, 2 * 2 * 4 * 32);
  EXPECT_TRUE(store.take_events().empty());
  ASSERT_FALSE(store.begin(std::vector<Piece>{{0, 4, 1}}));
  write_row(store, 0, 4, 24);
  store.commit();
  EXPECT_TRUE(holds(store, 0, {20, 21, 22, 23, 24}));
  EXPECT_EQ(store.held().reserved, 2 * 12 * 32);
  EXPECT_EQ(store.held().peak, 2 * 16 * 32);
  EXPECT_LE(store.held().peak, spec.budget_bytes);
  const auto events = store.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "grow");
  EXPECT_EQ(events[0].bytes, 2 * 8 * 32);
}

TEST(ContiguousStore, RefusesToOpenBeyondTheBudget) {
  StoreSpec spec = number_spec(2, 10);
  spec.budget_bytes = 640;
  ContiguousStore store(spec, [](int) { return 10; });
  store.open(0);
  EXPECT_THROW(store.open(1), RuntimeError);
  EXPECT_THROW(store.fork(0, 1, 0), RuntimeError);
  EXPECT_EQ(store.held().reserved, 640);
}

TEST(WorkspaceStore, HoldsTheStepInHandOnly) {
  WorkspaceStore store(number_spec(2, 32));
  store.open(0);
  store.open(1);
  EXPECT_FALSE(store.keeps_rows());
  ASSERT_FALSE(store.begin(std::vector<Piece>{{1, 0, 3}, {0, 0, 2}}));
  EXPECT_EQ(store.rows(1, 0, 3).first_slot, 0);
  EXPECT_EQ(store.rows(0, 1, 2).first_slot, 3);
  EXPECT_EQ(store.rows(0, 0, 2).pool, store.rows(0, 1, 2).pool);  // one physical layer
  store.commit();
  ASSERT_FALSE(store.begin(std::vector<Piece>{{1, 0, 3}}));
  EXPECT_THROW(store.rows(0, 0, 2), LogicError);
  EXPECT_EQ(store.held().reserved, 64 * 32);
  EXPECT_EQ(store.held().reserved, WorkspaceStore::bytes(number_spec(2, 32)));
}

// Random append / truncate / fork / close / rollback against plain lists.
class StoreModel {
 public:
  StoreModel(RowStore& store, int max_seqs, int max_len, uint32_t seed)
      : store_(store), max_seqs_(max_seqs), max_len_(max_len), random_(seed) {}

  const std::map<int, std::vector<uint64_t>>& sequences() const { return sequences_; }

  void act() {
    const int free = unused_id();
    switch (draw(6)) {
      case 0:
        if (free >= 0) {
          store_.open(free);
          sequences_[free] = {};
        }
        return;
      case 1:
        if (free >= 0 && !sequences_.empty()) fork(free);
        return;
      case 2:
        if (!sequences_.empty() && draw(3) == 0) {
          const int seq = any();
          store_.close(seq);
          sequences_.erase(seq);
        }
        return;
      case 3:
        if (!sequences_.empty()) {
          const int seq = any();
          const int length = draw(static_cast<int>(sequences_[seq].size()) + 1);
          store_.truncate(seq, length);
          sequences_[seq].resize(static_cast<size_t>(length));
        }
        return;
      default:
        append();
    }
  }

 private:
  int draw(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int any() {
    return std::next(sequences_.begin(), draw(static_cast<int>(sequences_.size())))->first;
  }
  int unused_id() const {
    for (int seq = 0; seq < max_seqs_; ++seq) {
      if (!sequences_.count(seq)) return seq;
    }
    return -1;
  }

  void fork(int to) {
    const int from = any();
    std::vector<uint64_t> kept = sequences_[from];
    kept.resize(static_cast<size_t>(draw(static_cast<int>(kept.size()) + 1)));
    store_.fork(from, to, static_cast<int>(kept.size()));
    sequences_[to] = std::move(kept);
  }

  void append() {
    std::vector<Piece> pieces;
    for (const auto& [seq, numbers] : sequences_) {
      const int first = static_cast<int>(numbers.size());
      const int rows = std::min(draw(7), max_len_ - first);
      if (rows > 0) pieces.push_back({seq, first, rows});
    }
    if (pieces.empty() || store_.begin(pieces)) return;
    auto after = sequences_;
    for (const Piece& piece : pieces) {
      for (int i = 0; i < piece.rows; ++i) {
        write_row(store_, piece.seq, piece.first + i, ++number_);
        after[piece.seq].push_back(number_);
      }
    }
    if (draw(4) == 0) {
      store_.rollback();
    } else {
      store_.commit();
      sequences_ = std::move(after);
    }
  }

  RowStore& store_;
  int max_seqs_, max_len_;
  std::mt19937 random_;
  uint64_t number_ = 0;
  std::map<int, std::vector<uint64_t>> sequences_;
};

TEST(PagedStore, MatchesPlainListsUnderRandomUse) {
  for (const bool shuffled : {false, true}) {
    StoreSpec spec = number_spec(4, 30);
    spec.poison = true;
    spec.budget_bytes = PagedStore::table_bytes(spec, 4) + 20 * PagedStore::block_bytes(spec, 4);
    PagedStore store(spec, 4, shuffled ? std::optional<uint64_t>(3) : std::nullopt);
    StoreModel model(store, 4, 30, 11);
    for (int i = 0; i < 3000; ++i) {
      model.act();
      std::map<int32_t, int> mapped;
      for (int seq = 0; seq < 4; ++seq) {
        const auto found = model.sequences().find(seq);
        const size_t rows = found == model.sequences().end() ? 0 : found->second.size();
        const auto table = store.table(seq);
        for (size_t b = 0; b < table.size(); ++b) {
          ASSERT_EQ(table[b] >= 0, b * 4 < rows) << "sequence " << seq << ", block " << b;
          if (table[b] >= 0) ++mapped[table[b]];
        }
        if (rows > 0) {
          ASSERT_TRUE(holds(store, seq, found->second)) << "after " << i;
        }
      }
      for (const auto& [id, count] : mapped) ASSERT_EQ(store.pool().references(id), count);
      ASSERT_EQ(store.pool().used(), static_cast<int>(mapped.size()));
      ASSERT_EQ(store.pool().used() + store.pool().free(), store.pool().held());
      ASSERT_LE(store.held().peak, spec.budget_bytes);
    }
  }
}

TEST(ContiguousStore, MatchesPlainListsUnderRandomUse) {
  StoreSpec spec = number_spec(4, 30);
  spec.poison = true;
  ContiguousStore store(spec, [](int rows) { return std::min(30, std::max(4, rows + rows / 2)); });
  StoreModel model(store, 4, 30, 12);
  for (int i = 0; i < 3000; ++i) {
    model.act();
    for (const auto& [seq, numbers] : model.sequences()) ASSERT_TRUE(holds(store, seq, numbers));
  }
}

TEST(RowStores, PoisonWhatIsUnused) {
  StoreSpec spec = number_spec(1, 8);
  spec.poison = true;
  PagedStore paged(spec, 4, std::nullopt);
  ContiguousStore contiguous(spec, [](int) { return 8; });
  for (RowStore* store : {static_cast<RowStore*>(&paged), static_cast<RowStore*>(&contiguous)}) {
    store->open(0);
    ASSERT_FALSE(store->begin(std::vector<Piece>{{0, 0, 3}}));
    for (int i = 0; i < 3; ++i) write_row(*store, 0, i, 5);
    store->commit();
    const Span span = store->rows(0, 1, 4);
    EXPECT_EQ(number_at(span.v_tile(1, 3)), ~uint64_t{0});
    store->truncate(0, 1);
    EXPECT_EQ(number_at(span.v_tile(1, 1)), ~uint64_t{0});
    EXPECT_NE(number_at(span.v_tile(1, 0)), ~uint64_t{0});
    ASSERT_FALSE(store->begin(std::vector<Piece>{{0, 1, 2}}));
    write_row(*store, 0, 1, 6);
    store->rollback();
    EXPECT_EQ(number_at(span.k_tile(0, 1)), ~uint64_t{0});
  }
}

}  // namespace
}  // namespace kvmark
