// The checked half of KvEngine, over an engine that only writes down what it was asked.
#include "engines/core/kv_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

KvSpec small_spec() {
  KvSpec spec;
  spec.layers = 2;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.k_dim = 3;
  spec.v_dim = 5;
  spec.max_seqs = 2;
  spec.max_len = 8;
  spec.max_rows = 6;
  return spec;
}

class FakeEngine : public KvEngine {
 public:
  explicit FakeEngine(const KvSpec& spec, bool keeps = true) : KvEngine(spec), keeps_(keeps) {}
  std::string kernel() const override { return "fake"; }
  double tolerance() const override { return 0; }
  StoredBound stored_bound() const override { return {}; }
  using KvEngine::committed_rows;
  using KvEngine::fed_rows;

  bool refuse = false;
  bool finite = true;
  bool open_fails = false;
  mutable std::vector<std::string> calls;

 protected:
  bool keeps_rows() const override { return keeps_; }
  void do_open(SeqId seq) override {
    if (open_fails) throw RuntimeError("budget");
    calls.push_back(fmt::format("open {}", seq));
  }
  void do_fork(SeqId from, SeqId to, int length) override {
    calls.push_back(fmt::format("fork {} {} {}", from, to, length));
  }
  void do_close(SeqId seq) override { calls.push_back(fmt::format("close {}", seq)); }
  std::optional<Refusal> do_truncate(SeqId seq, int length) override {
    if (refuse) return Refusal{"evicted"};
    calls.push_back(fmt::format("truncate {} {}", seq, length));
    return std::nullopt;
  }
  std::optional<Refusal> do_begin(std::span<const Piece>) override {
    if (refuse) return Refusal{"full"};
    calls.push_back("begin");
    return std::nullopt;
  }
  void do_attend(int layer, Outputs, Tensor, Tensor, Tensor, Tensor) override {
    calls.push_back(fmt::format("attend {}", layer));
  }
  bool do_finite() override { return finite; }
  void do_commit() override { calls.push_back("commit"); }
  void do_rollback() override { calls.push_back("rollback"); }
  void do_read(SeqId, int, int, int, Tensor, Tensor) const override { calls.push_back("read"); }
  Footprint do_footprint() const override { return {}; }
  std::vector<Event> do_take_events() override { return {}; }

 private:
  bool keeps_;
};

// Tensors of the right shapes for a step.
struct Rows {
  Rows(const KvSpec& spec, int rows, int wanted)
      : memory(1024),
        q{memory.data(), rows, spec.heads * spec.k_dim},
        k{memory.data(), rows, spec.kv_heads * spec.k_dim},
        v{memory.data(), rows, spec.kv_heads * spec.v_dim},
        out{memory.data(), wanted, spec.heads * spec.v_dim} {}
  std::vector<float> memory;
  Tensor q, k, v, out;
};

void attend_all(KvEngine& engine, int rows) {
  const Rows t(engine.spec(), rows, rows);
  for (int layer = 0; layer < engine.spec().layers; ++layer) {
    engine.attend(layer, Outputs::all, t.q, t.k, t.v, t.out);
  }
}

void step(KvEngine& engine, std::vector<Piece> pieces) {
  ASSERT_FALSE(engine.begin(pieces));
  int rows = 0;
  for (const Piece& piece : pieces) rows += piece.rows;
  attend_all(engine, rows);
  engine.commit();
}

TEST(CheckSpec, NamesTheFieldThatIsImpossible) {
  EXPECT_FALSE(check_spec(small_spec()));
  KvSpec spec = small_spec();
  spec.layers = 0;
  EXPECT_THAT(check_spec(spec)->reason, HasSubstr("layers is 0"));
  spec = small_spec();
  spec.kv_heads = 3;
  EXPECT_THAT(check_spec(spec)->reason, HasSubstr("4 query heads cannot share 3"));
  spec = small_spec();
  spec.rope = Rope{.dims = 4};
  EXPECT_THAT(check_spec(spec)->reason, HasSubstr("at most the 3 of a key head"));
  spec.rope = Rope{.dims = 1};
  EXPECT_TRUE(check_spec(spec));
  spec = small_spec();
  spec.budget_bytes = -1;
  EXPECT_THAT(check_spec(spec)->reason, HasSubstr("budget_bytes"));
  EXPECT_THROW(FakeEngine{spec}, LogicError);
}

TEST(KvEngine, CountsWhatWasCommitted) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const SeqId b = engine.open();
  step(engine, {{a, 0, 3}, {b, 0, 1}});
  step(engine, {{b, 1, 2}});
  EXPECT_EQ(engine.seen(a), 3);
  EXPECT_EQ(engine.seen(b), 3);
  EXPECT_EQ(engine.next(b), 3);
  EXPECT_EQ(engine.committed_rows(), 6);
  EXPECT_THAT(engine.calls, ElementsAre("open 0", "open 1", "begin", "attend 0", "attend 1",
                                        "commit", "begin", "attend 0", "attend 1", "commit"));
}

TEST(KvEngine, WithoutACacheIsFedFromTheStart) {
  FakeEngine engine(small_spec(), /*keeps=*/false);
  const SeqId a = engine.open();
  step(engine, {{a, 0, 2}});
  EXPECT_EQ(engine.seen(a), 2);
  EXPECT_EQ(engine.next(a), 0);
  const std::vector<Piece> nothing_new = {{a, 0, 2}};
  EXPECT_THROW(engine.begin(nothing_new), LogicError);
  step(engine, {{a, 0, 3}});
  EXPECT_EQ(engine.seen(a), 3);
}

TEST(KvEngine, OpensTheLowestFreeIdUpToTheMaximum) {
  FakeEngine engine(small_spec());
  EXPECT_EQ(engine.open(), 0);
  EXPECT_EQ(engine.open(), 1);
  EXPECT_THROW(engine.open(), RuntimeError);
  EXPECT_THROW(engine.fork(0, 0), RuntimeError);
  engine.close(0);
  engine.open_fails = true;
  EXPECT_THROW(engine.open(), RuntimeError);
  EXPECT_THROW(engine.seen(0), LogicError);  // the failed open left nothing behind
  engine.open_fails = false;
  EXPECT_EQ(engine.open(), 0);
  EXPECT_EQ(engine.seen(0), 0);
}

TEST(KvEngine, ForksAndTruncatesWithinWhatWasSeen) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  step(engine, {{a, 0, 4}});
  EXPECT_THROW(engine.fork(a, 5), LogicError);
  const SeqId b = engine.fork(a, 3);
  EXPECT_EQ(engine.seen(b), 3);
  EXPECT_THROW(engine.truncate(a, 5), LogicError);
  EXPECT_THROW(engine.truncate(a, -1), LogicError);
  EXPECT_FALSE(engine.truncate(a, 4));
  EXPECT_FALSE(engine.truncate(a, 1));
  EXPECT_EQ(engine.seen(a), 1);
  engine.refuse = true;
  EXPECT_EQ(engine.truncate(b, 0)->reason, "evicted");
  EXPECT_EQ(engine.seen(b), 3);
}

TEST(KvEngine, RefusesAStepAsAWhole) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const SeqId b = engine.open();
  const std::vector<Piece> too_many_rows = {{a, 0, 4}, {b, 0, 3}};
  EXPECT_THAT(engine.begin(too_many_rows)->reason, HasSubstr("7 rows"));
  step(engine, {{a, 0, 6}});
  const std::vector<Piece> too_long = {{b, 0, 1}, {a, 6, 3}};
  EXPECT_THAT(engine.begin(too_long)->reason, HasSubstr("9 positions"));
  engine.refuse = true;
  const std::vector<Piece> fine = {{b, 0, 1}};
  EXPECT_EQ(engine.begin(fine)->reason, "full");
  EXPECT_THROW(engine.rollback(), LogicError);  // no step is open
  engine.refuse = false;
  step(engine, fine);
}

TEST(KvEngine, RefusesMisusedPieces) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  step(engine, {{a, 0, 2}});
  for (const std::vector<Piece>& pieces : std::vector<std::vector<Piece>>{
           {},                      // nothing to do
           {{a, 0, 3}},             // position 0 of a sequence that has rows
           {{a, 3, 1}},             // a gap
           {{a, 2, 0}},             // no rows
           {{1, 0, 1}},             // not open
           {{-1, 0, 1}},            // no such id
           {{a, 2, 1}, {a, 2, 1}},  // twice
       }) {
    EXPECT_THROW(engine.begin(pieces), LogicError);
  }
  EXPECT_EQ(engine.seen(a), 2);
}

TEST(KvEngine, HoldsTheOrderOfAStep) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const std::vector<Piece> pieces = {{a, 0, 2}};
  const Rows t(engine.spec(), 2, 2);
  const auto attend = [&](int layer) { engine.attend(layer, Outputs::all, t.q, t.k, t.v, t.out); };
  EXPECT_THROW(attend(0), LogicError);
  EXPECT_THROW(engine.commit(), LogicError);
  ASSERT_FALSE(engine.begin(pieces));
  EXPECT_THROW(engine.begin(pieces), LogicError);
  EXPECT_THROW(engine.open(), LogicError);
  EXPECT_THROW(engine.close(a), LogicError);
  EXPECT_THROW(engine.fork(a, 0), LogicError);
  EXPECT_THROW(engine.truncate(a, 0), LogicError);
  EXPECT_THROW(attend(1), LogicError);  // layer 0 was left out
  attend(0);
  EXPECT_THROW(attend(0), LogicError);  // twice
  EXPECT_THROW(engine.commit(), LogicError);
  attend(1);
  EXPECT_THROW(attend(2), LogicError);
  engine.commit();
  EXPECT_EQ(engine.seen(a), 2);
}

TEST(KvEngine, HoldsTheShapesOfAStep) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const std::vector<Piece> pieces = {{a, 0, 2}};
  ASSERT_FALSE(engine.begin(pieces));
  const Rows t(engine.spec(), 2, 2);
  const Rows short_rows(engine.spec(), 1, 1);
  EXPECT_THROW(engine.attend(0, Outputs::all, short_rows.q, t.k, t.v, t.out), LogicError);
  EXPECT_THROW(engine.attend(0, Outputs::all, t.q, short_rows.k, t.v, t.out), LogicError);
  EXPECT_THROW(engine.attend(0, Outputs::all, t.q, t.k, short_rows.v, t.out), LogicError);
  EXPECT_THROW(engine.attend(0, Outputs::all, t.q, t.k, t.v, short_rows.out), LogicError);
  EXPECT_THROW(engine.attend(0, Outputs::last, t.q, t.k, t.v, t.out), LogicError);
  EXPECT_THROW(engine.attend(0, Outputs::all, Tensor{nullptr, 2, t.q.cols}, t.k, t.v, t.out),
               LogicError);
  engine.attend(0, Outputs::last, t.q, t.k, t.v, short_rows.out);
  engine.attend(1, Outputs::none, Tensor{}, t.k, t.v, Tensor{});
  engine.commit();
}

TEST(KvEngine, RollbackForgetsTheStep) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const std::vector<Piece> pieces = {{a, 0, 2}};
  ASSERT_FALSE(engine.begin(pieces));
  engine.rollback();
  EXPECT_EQ(engine.seen(a), 0);
  step(engine, {{a, 0, 1}});
  EXPECT_EQ(engine.seen(a), 1);
}

TEST(KvEngine, CommitRollsBackWhatIsNotFinite) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  const std::vector<Piece> pieces = {{a, 0, 2}};
  ASSERT_FALSE(engine.begin(pieces));
  attend_all(engine, 2);
  engine.finite = false;
  EXPECT_THROW(engine.commit(), RuntimeError);
  EXPECT_EQ(engine.calls.back(), "rollback");
  EXPECT_EQ(engine.seen(a), 0);
  engine.finite = true;
  step(engine, {{a, 0, 2}});
}

TEST(KvEngine, ReadsWhatIsStored) {
  FakeEngine engine(small_spec());
  const SeqId a = engine.open();
  step(engine, {{a, 0, 2}});
  const Rows two(engine.spec(), 2, 2);
  const Rows three(engine.spec(), 3, 3);
  engine.read(a, 1, 0, 2, two.k, two.v);
  EXPECT_THROW(engine.read(a, 1, 0, 3, three.k, three.v), LogicError);
  EXPECT_THROW(engine.read(a, 2, 0, 2, two.k, two.v), LogicError);
  EXPECT_THROW(engine.read(a, 0, -1, 2, two.k, two.v), LogicError);
  EXPECT_THROW(engine.read(a, 0, 0, 2, three.k, two.v), LogicError);

  const std::vector<Piece> pieces = {{a, 2, 1}};
  ASSERT_FALSE(engine.begin(pieces));
  const Rows one(engine.spec(), 1, 1);
  EXPECT_THROW(engine.read(a, 0, 0, 3, three.k, three.v), LogicError);  // not attended yet
  engine.attend(0, Outputs::all, one.q, one.k, one.v, one.out);
  engine.read(a, 0, 0, 3, three.k, three.v);
  EXPECT_THROW(engine.read(a, 1, 0, 3, three.k, three.v), LogicError);
  engine.rollback();
  EXPECT_THROW(engine.read(a, 0, 0, 3, three.k, three.v), LogicError);
}

// Reads the rows of the layer at hand, as a verifier does.
class Watcher : public StepObserver {
 public:
  explicit Watcher(FakeEngine& engine) : engine_(engine) {}
  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override {
    engine_.read(pieces[0].seq, layer, 0, pieces[0].first + pieces[0].rows, k, v);
    layers.push_back(layer);
    EXPECT_EQ(outputs, Outputs::all);
    EXPECT_EQ(q.rows, out.rows);
  }
  std::vector<int> layers;

 private:
  FakeEngine& engine_;
};

TEST(KvEngine, TellsTheObserverAfterEachLayer) {
  FakeEngine engine(small_spec());
  Watcher watcher(engine);
  engine.set_observer(&watcher);
  const SeqId a = engine.open();
  step(engine, {{a, 0, 2}});
  EXPECT_THAT(watcher.layers, ElementsAre(0, 1));
  watcher.layers.clear();
  engine.set_observer(nullptr);
  step(engine, {{a, 2, 2}});
  EXPECT_THAT(watcher.layers, IsEmpty());
}

}  // namespace
}  // namespace kvmark
