#include "engines/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <set>

#include "engines/catalog/store_spec.h"

namespace kvmark {
namespace {

using ::testing::HasSubstr;

KvSpec shape(int layers, int heads, int kv_heads, int dim, int max_len) {
  KvSpec spec;
  spec.layers = layers;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.k_dim = spec.v_dim = dim;
  spec.max_len = spec.max_rows = max_len;
  return spec;
}

const KvSpec kSeedGqa = shape(4, 8, 2, 64, 1024);
const KvSpec kGpt2 = shape(12, 12, 12, 64, 1024);

std::string refusal_of(std::string_view name, const KvSpec& spec = kSeedGqa) {
  const auto refusal = check_engine(parse_engine(name), spec);
  return refusal ? refusal->reason : "";
}

Footprint footprint_at(std::string_view name, const KvSpec& spec, int length) {
  return predict_footprint(parse_engine(name), spec, std::vector<int>{length});
}

TEST(Catalog, HoldsEveryLayoutWithEveryCodec) {
  std::set<std::string> names;
  for (const CatalogEntry& entry : catalog()) {
    names.insert(entry.engine.name());
    EXPECT_EQ(entry.use.empty(), entry.refusal.has_value()) << entry.engine.name();
  }
  EXPECT_EQ(names.size(), 3 * codecs().size());
  for (const std::string& preset : preset_names()) {
    EXPECT_TRUE(names.count(parse_engine(preset).name())) << preset;
  }
}

TEST(Catalog, RefusesOnlyStorageFormatsOfNoCache) {
  for (const CatalogEntry& entry : catalog()) {
    const bool stored = entry.engine.layout != LayoutKind::recompute;
    EXPECT_EQ(entry.refusal.has_value(), !stored && entry.engine.k_codec != "f32")
        << entry.engine.name();
  }
}

TEST(CheckEngine, SaysWhyACombinationCannotBe) {
  EXPECT_EQ(refusal_of("recompute"), "");
  EXPECT_THAT(refusal_of("recompute/int8:g32"), HasSubstr("keeps nothing between steps"));
  EXPECT_THAT(refusal_of("recompute/f32/grow"), HasSubstr("nothing can grow"));
  EXPECT_THAT(refusal_of("paged:16/f32/grow"), HasSubstr("contiguous only"));
  EXPECT_EQ(refusal_of("contiguous/f32/grow:1.5"), "");
  EXPECT_EQ(refusal_of("paged:48/k=f16,v=int4:g32"), "");
  EXPECT_THAT(refusal_of("paged:8/f16"), HasSubstr("use a multiple of 16"));
  EXPECT_THAT(refusal_of("paged:16/f32/grow"), HasSubstr("engine `paged:16/f32/grow:2`"));

  EngineSpec spec = parse_engine("paged");
  spec.block = 0;
  EXPECT_THAT(check_engine(spec, kSeedGqa)->reason, HasSubstr("at least 1 position"));
  spec = parse_engine("contiguous");
  spec.v_codec = "f33";
  EXPECT_THAT(check_engine(spec, kSeedGqa)->reason, HasSubstr("v: no codec `f33`"));
}

TEST(CheckEngine, RefusesImpossibleShapes) {
  EXPECT_THAT(refusal_of("contiguous", shape(4, 8, 3, 64, 16)), HasSubstr("share 3 KV heads"));
  EXPECT_THAT(refusal_of("paged", shape(0, 8, 2, 64, 16)), HasSubstr("layers is 0"));
  EXPECT_THAT(refusal_of("paged", shape(4, 8, 2, 0, 16)), HasSubstr("k_dim is 0"));
  EXPECT_THAT(refusal_of("contiguous", shape(4, 8, 2, 64, INT_MAX)), HasSubstr("positions"));
  EXPECT_THAT(refusal_of("contiguous", shape(INT_MAX, 8, 8, INT_MAX, 1 << 29)),
              HasSubstr("address space"));
  KvSpec crowd = shape(1, 1, 1, 1, 1 << 20);
  crowd.max_seqs = 1 << 24;
  EXPECT_THAT(refusal_of("paged:16/f32", crowd), HasSubstr("block table"));
}

TEST(CheckEngine, HoldsAwkwardHeadsWithEveryFormat) {
  for (const int dim : {64, 80, 96, 100, 128}) {
    for (const Codec& codec : codecs()) {
      EXPECT_EQ(refusal_of(codec.name, shape(2, 4, 2, dim, 64)), "") << dim;
    }
  }
}

TEST(Footprint, SeedGqaAt511Positions) {
  for (const char* name : {"contiguous", "paged"}) {
    const Footprint f = footprint_at(name, kSeedGqa, 511);
    EXPECT_EQ(int64_t{511} * 2 * 64, 65408);  // elements of K, and of V, in a layer
    EXPECT_EQ(f.live_bytes, 4 * 2 * int64_t{261632}) << name;
    EXPECT_EQ(f.scale_bytes, 0);
  }
  EXPECT_EQ(2 * footprint_at("fp16", kSeedGqa, 511).live_bytes,
            footprint_at("contiguous", kSeedGqa, 511).live_bytes);
  EXPECT_EQ(2 * footprint_at("bf16", kSeedGqa, 511).live_bytes,
            footprint_at("contiguous", kSeedGqa, 511).live_bytes);
}

TEST(Footprint, Gpt2IsTwoNDModelElementsALayer) {
  for (const int n : {1, 256, 1000}) {
    EXPECT_EQ(footprint_at("contiguous", kGpt2, n).live_bytes, int64_t{2} * n * 768 * 12 * 4);
  }
}

TEST(Footprint, CountsScales) {
  // A row of 64 int8: 64 bytes of codes, 2 scales of 2 bytes; int4: 32 and 4.
  const int64_t rows = int64_t{511} * 4 * 2 * 2;
  const Footprint int8 = footprint_at("int8:g32", kSeedGqa, 511);
  EXPECT_EQ(int8.payload_bytes, rows * 64);
  EXPECT_EQ(int8.scale_bytes, rows * 4);
  const Footprint int4 = footprint_at("int4:g32", kSeedGqa, 511);
  EXPECT_EQ(int4.payload_bytes, rows * 32);
  EXPECT_EQ(int4.scale_bytes, rows * 4);
  EXPECT_EQ(int4.live_bytes, rows * 36);
}

TEST(Footprint, ContiguousReservesTheMaximumAndPagedWhatIsUsed) {
  const int64_t row = 4 * 2 * 2 * 64 * 4;
  EXPECT_EQ(footprint_at("contiguous", kSeedGqa, 1).reserved_bytes, 1024 * row);
  const Footprint paged = footprint_at("paged", kSeedGqa, 17);
  EXPECT_EQ(paged.table_bytes, 1024 / 16 * 4);
  EXPECT_EQ(paged.blocks_used, 2);
  EXPECT_EQ(paged.reserved_bytes, 32 * row + paged.table_bytes);
}

TEST(Footprint, PagingCostsUnderTenPercentFrom512On) {
  for (const Codec& codec : codecs()) {
    const std::string name = fmt::format("paged:16/{}", codec.name);
    for (int length = 512; length <= 1024; ++length) {
      const Footprint f = footprint_at(name, kSeedGqa, length);
      ASSERT_LT(static_cast<double>(f.reserved_bytes), 1.10 * static_cast<double>(f.live_bytes))
          << name << " at " << length;
    }
  }
}

TEST(Footprint, RecomputeKeepsNoBytes) {
  const Footprint f = footprint_at("recompute", kSeedGqa, 511);
  EXPECT_EQ(f.live_bytes, 0);
  EXPECT_EQ(f.reserved_bytes, int64_t{1024} * 2 * 2 * 64 * 4);  // one layer's workspace
}

TEST(Footprint, GrowthCountsOldAndNewTowardsThePeak) {
  const int64_t row = 4 * 2 * 2 * 64 * 4;
  const Footprint f = footprint_at("contiguous/f32/grow:2", kSeedGqa, 300);
  EXPECT_EQ(f.reserved_bytes, 512 * row);
  EXPECT_EQ(f.peak_bytes, (256 + 512) * row);
}

TEST(Footprint, RefusesLengthsBeyondTheSpec) {
  EXPECT_THROW(footprint_at("contiguous", kSeedGqa, 1025), LogicError);
  EXPECT_THROW(footprint_at("contiguous", kSeedGqa, -1), LogicError);
  EXPECT_THROW(footprint_at("recompute/f16", kSeedGqa, 1), LogicError);
  EXPECT_THROW(predict_footprint(parse_engine("paged"), kSeedGqa, std::vector<int>{1, 1}),
               LogicError);
}

}  // namespace
}  // namespace kvmark
