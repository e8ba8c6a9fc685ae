// Bytes: the formula equals the allocator, budgets hold, and a warm step allocates nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engines/catalog/catalog.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_engine_harness.h"

namespace {
std::atomic<int64_t> allocations{0};

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* counted(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace kvmark::testing {
namespace {

using ::testing::HasSubstr;

class Memory : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, Memory, ::testing::ValuesIn(engine_names()), test_name);

void expect_equal(const Footprint& predicted, const Footprint& counted) {
  EXPECT_EQ(predicted.live_bytes, counted.live_bytes);
  EXPECT_EQ(predicted.reserved_bytes, counted.reserved_bytes);
  EXPECT_EQ(predicted.peak_bytes, counted.peak_bytes);
  EXPECT_EQ(predicted.payload_bytes, counted.payload_bytes);
  EXPECT_EQ(predicted.scale_bytes, counted.scale_bytes);
  EXPECT_EQ(predicted.table_bytes, counted.table_bytes);
  EXPECT_EQ(predicted.blocks_used, counted.blocks_used);
  EXPECT_EQ(predicted.blocks_free, counted.blocks_free);
}

TEST_P(Memory, FormulaIsTheAllocatorsCount) {
  Harness h(GetParam());
  std::vector<int> lengths;
  for (int i = 0; i < 3; ++i) lengths.push_back(static_cast<int>(h.content(h.open()).size()));
  expect_equal(predict_footprint(parse_engine(GetParam()), h.spec(), lengths),
               h.engine().footprint());
  for (SeqId seq = 0; seq < 3; ++seq) {
    for (const int length : {1, 16, 17, 64, 65, 100 + 20 * seq}) {
      auto& have = lengths[static_cast<size_t>(seq)];
      for (; have < length; ++have) h.fill({{seq, tokens(seq, have, 1)}});
      expect_equal(predict_footprint(parse_engine(GetParam()), h.spec(), lengths),
                   h.engine().footprint());
    }
  }
  const Footprint f = h.engine().footprint();
  EXPECT_EQ(f.payload_bytes + f.scale_bytes, f.live_bytes);
  EXPECT_LE(f.reserved_bytes, f.peak_bytes);
}

TEST_P(Memory, WarmStepAllocatesNothing) {
  const KvSpec spec = odd_spec();
  ThreadPool pool(2);
  const auto engine = make_cpu_engine(parse_engine(GetParam()), spec, pool);
  const SeqId seqs[] = {engine->open(), engine->open()};
  std::vector<float> memory(static_cast<size_t>(spec.max_rows) * 6 * 40, 0.5f);
  std::vector<float> outputs(memory.size());
  const auto feed = [&](int rows_each) {
    Piece pieces[2];
    int rows = 0;
    for (int i = 0; i < 2; ++i) {
      const int first = engine->next(seqs[i]);
      pieces[i] = {seqs[i], first, engine->seen(seqs[i]) + rows_each - first};
      rows += pieces[i].rows;
    }
    if (engine->begin(pieces)) return false;
    for (int layer = 0; layer < spec.layers; ++layer) {
      engine->attend(layer, Outputs::all, {memory.data(), rows, spec.heads * spec.k_dim},
                     {memory.data(), rows, spec.kv_heads * spec.k_dim},
                     {memory.data(), rows, spec.kv_heads * spec.v_dim},
                     {outputs.data(), rows, spec.heads * spec.v_dim});
    }
    engine->commit();
    return true;
  };
  ASSERT_TRUE(feed(65));  // past the first growth
  const int64_t before = allocations;
  bool fed = true;
  for (int i = 0; i < 15; ++i) fed = feed(1) && fed;
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(fed);
}

// Long enough that two threads share the splits of one sequence.
TEST(LongContext, AWarmStepAllocatesNothing) {
  KvSpec spec;
  spec.layers = spec.max_seqs = 1;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.k_dim = spec.v_dim = 16;
  spec.max_len = 4096;
  spec.max_rows = 512;
  ThreadPool pool(2);
  for (const char* name : {"contiguous/f16", "paged:16/int8:g32"}) {
    const auto engine = make_cpu_engine(parse_engine(name), spec, pool);
    const SeqId seq = engine->open();
    std::vector<float> memory(int64_t{spec.max_rows} * spec.heads * spec.k_dim, 0.5f);
    std::vector<float> outputs(memory.size());
    const auto feed = [&](int rows) {
      const Piece piece{seq, engine->next(seq), rows};
      if (engine->begin({&piece, 1})) return false;
      engine->attend(0, Outputs::all, {memory.data(), rows, spec.heads * spec.k_dim},
                     {memory.data(), rows, spec.kv_heads * spec.k_dim},
                     {memory.data(), rows, spec.kv_heads * spec.v_dim},
                     {outputs.data(), rows, spec.heads * spec.v_dim});
      engine->commit();
      return true;
    };
    bool fed = true;
    while (engine->next(seq) < 3584) fed = feed(512) && fed;
    const int64_t before = allocations;
    for (int i = 0; i < 5; ++i) fed = feed(1) && fed;
    EXPECT_EQ(allocations - before, 0) << name;
    EXPECT_TRUE(fed) << name;
  }
}

TEST_P(Memory, ClosedSequencesFreeOrKeepAsSaid) {
  Harness h(GetParam());
  const SeqId a = h.open();
  h.append(a, tokens(1, 0, 33));
  h.close(a);
  const Footprint f = h.engine().footprint();
  EXPECT_EQ(f.live_bytes, 0);
  EXPECT_EQ(f.blocks_used, 0);
  if (parse_engine(GetParam()).layout == LayoutKind::contiguous) {
    EXPECT_EQ(f.reserved_bytes, 0);
  }
}

// A budget smaller than one sequence is a clear failure at open() or begin(), and the peak of what
// does fit stays below it.
TEST_P(Memory, BudgetIsHeld) {
  const EngineSpec engine = parse_engine(GetParam());
  KvSpec spec = odd_spec();
  const int64_t needed = predict_footprint(engine, spec, std::vector<int>{100}).peak_bytes;
  spec.budget_bytes = needed;
  Harness enough(GetParam(), spec);
  const SeqId a = enough.open();
  for (int i = 0; i < 100; ++i) enough.fill({{a, tokens(1, i, 1)}});
  EXPECT_LE(enough.engine().footprint().peak_bytes, needed);

  spec.budget_bytes = 100;
  Harness tiny(GetParam(), spec);
  EXPECT_THROW(tiny.open(), RuntimeError);

  if (engine.layout != LayoutKind::paged && engine.policy != PolicyKind::grow) return;
  spec.budget_bytes = needed - 64;
  Harness less(GetParam(), spec);
  const SeqId b = less.open();
  std::string reason;
  int held = 0;
  for (; held < 100 && reason.empty(); ++held) {
    try {
      less.fill({{b, tokens(1, held, 1)}});
    } catch (const RuntimeError& refusal) {  // the harness throws what begin() refuses
      reason = refusal.what();
    }
  }
  EXPECT_THAT(reason, HasSubstr("budget"));
  EXPECT_LE(less.engine().footprint().peak_bytes, spec.budget_bytes);
  EXPECT_EQ(less.engine().seen(b), held - 1);  // as before the refused step
}

TEST(CpuEngine, RefusesWhatTheCatalogRefuses) {
  ThreadPool pool(1);
  EXPECT_THROW(make_cpu_engine(parse_engine("recompute/f16"), odd_spec(), pool), UsageError);
  EXPECT_THROW(make_cpu_engine(parse_engine("paged:16/f32/grow"), odd_spec(), pool), UsageError);
}

TEST(CpuEngine, CountsSaturatedValues) {
  KvSpec spec = odd_spec();
  spec.rope.reset();
  spec.layers = 1;
  ThreadPool pool(1);
  const auto engine = make_cpu_engine(parse_engine("fp8:e4m3"), spec, pool);
  const SeqId seq = engine->open();
  std::vector<float> q(6 * 40), k(2 * 40), v(2 * 24, 1e9f), out(6 * 24);
  const auto feed = [&] {
    const std::vector<Piece> pieces = {{seq, engine->next(seq), 1}};
    ASSERT_FALSE(engine->begin(pieces));
    engine->attend(0, Outputs::all, {q.data(), 1, 240}, {k.data(), 1, 80}, {v.data(), 1, 48},
                   {out.data(), 1, 144});
  };
  feed();
  EXPECT_EQ(engine->footprint().saturated, 0);  // of committed steps
  engine->rollback();
  EXPECT_EQ(engine->footprint().saturated, 0);
  feed();
  engine->commit();
  EXPECT_EQ(engine->footprint().saturated, 48);
}

// The figures of the README: 65,408 elements of K, and of V, in a layer; f16 exactly half of f32.
TEST(CpuEngine, SeedGqaAt511Positions) {
  KvSpec spec;
  spec.layers = 4;
  spec.heads = 8;
  spec.kv_heads = 2;
  spec.k_dim = spec.v_dim = 64;
  spec.max_len = 1024;
  spec.max_rows = 511;
  const auto live = [&](const char* engine) {
    Harness h(engine, spec);
    h.fill({{h.open(), tokens(1, 0, 511)}});
    return h.engine().footprint().live_bytes;
  };
  EXPECT_EQ(live("contiguous"), 4 * 2 * 65408 * 4);
  EXPECT_EQ(live("contiguous"), 4 * 2 * 261632);
  EXPECT_EQ(live("paged"), 4 * 2 * 261632);
  EXPECT_EQ(live("fp16") * 2, live("contiguous"));
  EXPECT_EQ(live("recompute"), 0);
}

}  // namespace
}  // namespace kvmark::testing
