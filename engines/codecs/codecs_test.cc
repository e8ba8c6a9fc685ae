// Properties that every registered format must have, and those of single formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/codecs/simd.h"
#include "engines/core/bits.h"

namespace kvmark {
namespace {

constexpr int kDims[] = {1, 5, 8, 20, 31, 32, 33, 63, 64, 80, 96, 100, 127, 128, 129, 256};

std::vector<float> normal_row(int dim, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> row(dim);
  for (float& x : row) x = normal(generator);
  return row;
}

// Encodes and decodes one row; memory around the tile must stay as it is.
struct RoundTrip {
  std::vector<float> row;
  int clamped;
};
RoundTrip round_trip(const Codec& codec, const TileForm& form, const std::vector<float>& row) {
  const int dim = static_cast<int>(row.size());
  const TileSpec tile = form.tile(dim);
  constexpr int kGuard = 64;
  std::vector<std::byte> memory(tile.bytes + 2 * kGuard, std::byte{0xa5});
  RoundTrip result{std::vector<float>(dim + 2 * kGuard, 42.0f), 0};
  result.clamped = form.encode(row.data(), dim, memory.data() + kGuard, 0);
  form.decode(memory.data() + kGuard, 0, dim, result.row.data() + kGuard);
  for (int i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], std::byte{0xa5}) << codec.name << " wrote before the tile";
    EXPECT_EQ(memory[kGuard + tile.bytes + i], std::byte{0xa5})
        << codec.name << " wrote behind the tile of " << dim;
    EXPECT_EQ(result.row[i], 42.0f) << codec.name;
    EXPECT_EQ(result.row[kGuard + dim + i], 42.0f) << codec.name;
  }
  result.row.erase(result.row.begin(), result.row.begin() + kGuard);
  result.row.resize(dim);
  return result;
}

// Keys and values of a format lie differently; their numbers are the same.
RoundTrip round_trip(const Codec& codec, const std::vector<float>& row) {
  const RoundTrip key = round_trip(codec, codec.k, row), value = round_trip(codec, codec.v, row);
  EXPECT_EQ(key.row, value.row) << codec.name;
  EXPECT_EQ(key.clamped, value.clamped) << codec.name;
  return key;
}

float largest(const std::vector<float>& row) {
  float most = 0;
  for (float x : row) most = std::max(most, std::fabs(x));
  return most;
}

const Codec& codec(std::string_view name) {
  const Codec* found = find_codec(name);
  if (found == nullptr) throw std::runtime_error("no codec " + std::string(name));
  return *found;
}

TEST(Codecs, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Codec& each : codecs()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_EQ(find_codec(each.name), &each);
    EXPECT_TRUE(each.kernel == "generic" || each.kernel == simd_target()) << each.kernel;
  }
  for (const char* name :
       {"f32", "f16", "bf16", "fp8:e4m3", "int8:g32", "int8:g64", "int8:g128", "int8:g32:asym",
        "int4:g32", "int4:g64", "int4:g128", "int4:g32:asym", "int4:g64:asym", "int4:g128:asym"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  EXPECT_EQ(find_codec("int4"), nullptr);
  EXPECT_EQ(find_codec(""), nullptr);
}

TEST(Codecs, BitsPerElement) {
  const std::pair<const char*, double> expected[] = {
      {"f32", 32},           {"f16", 16},        {"bf16", 16},         {"fp8:e4m3", 8},
      {"int8:g32", 8.5},     {"int8:g64", 8.25}, {"int8:g128", 8.125}, {"int8:g32:asym", 9},
      {"int4:g32", 4.5},     {"int4:g64", 4.25}, {"int4:g128", 4.125}, {"int4:g32:asym", 5},
      {"int4:g64:asym", 4.5}};
  for (const auto& [name, bits] : expected) {
    const TileSpec tile = codec(name).k.tile(128);
    EXPECT_EQ(8.0 * static_cast<double>(tile.bytes) / tile.tokens / 128, bits) << name;
  }
  EXPECT_EQ(codec("int4:g32:asym").scale_bytes(128), 16);
  EXPECT_EQ(codec("int8:g64").scale_bytes(100), 4);
  EXPECT_EQ(codec("f16").scale_bytes(128), 0);
}

TEST(Codecs, TilesAreWellFormed) {
  for (const Codec& each : codecs()) {
    for (int dim : kDims) {
      for (const TileSpec tile : {each.k.tile(dim), each.v.tile(dim)}) {
        EXPECT_TRUE(tile.tokens >= 1 && kTileRows % tile.tokens == 0) << each.name;
        EXPECT_GT(tile.bytes, each.scale_bytes(dim) * tile.tokens) << each.name;
        EXPECT_TRUE(tile.align >= 1 && tile.align <= 64 && (tile.align & (tile.align - 1)) == 0);
        EXPECT_EQ(tile.bytes % tile.align, 0) << each.name << " of " << dim;
      }
    }
  }
}

// A row written into a tile leaves the others as they are.
TEST(Codecs, RowsOfATileAreApart) {
  for (const Codec& each : codecs()) {
    for (const TileForm& form : {each.k, each.v}) {
      for (int dim : {5, 64, 100}) {
        const TileSpec tile = form.tile(dim);
        std::vector<std::byte> memory(tile.bytes, std::byte{0xff});
        std::vector<std::vector<float>> rows, stored;
        for (int slot = 0; slot < tile.tokens; ++slot) {
          rows.push_back(normal_row(dim, slot));
          form.encode(rows[slot].data(), dim, memory.data(), slot);
          stored.push_back(round_trip(each, form, rows[slot]).row);
        }
        form.encode(rows[0].data(), dim, memory.data(), tile.tokens / 2);  // overwritten
        form.encode(rows[tile.tokens / 2].data(), dim, memory.data(), tile.tokens / 2);
        for (int slot = 0; slot < tile.tokens; ++slot) {
          std::vector<float> row(dim);
          form.decode(memory.data(), slot, dim, row.data());
          EXPECT_EQ(row, stored[slot]) << each.name << " of " << dim << ", row " << slot;
        }
      }
    }
  }
}

TEST(Codecs, StoredRowsAreWithinTheirBound) {
  for (const Codec& each : codecs()) {
    for (int dim : kDims) {
      for (float scale : {1e-7f, 1e-5f, 1e-3f, 0.01f, 1.0f, 20.0f}) {
        auto row = normal_row(dim, dim, scale);
        row[dim / 2] *= 4;  // an outlier
        for (float offset : {0.0f, 3.0f * scale}) {
          for (float& x : row) x += offset;
          const RoundTrip stored = round_trip(each, row);
          EXPECT_EQ(stored.clamped, 0) << each.name;
          for (int d = 0; d < dim; ++d) {
            ASSERT_LE(std::fabs(stored.row[d] - row[d]), each.stored_bound.of(largest(row)))
                << each.name << " of " << dim << ", channel " << d;
          }
        }
      }
    }
  }
}

TEST(Codecs, BoundsAreNotIdle) {
  // A bound several times too large would let a wrong kernel pass.
  for (const Codec& each : codecs()) {
    if (each.name == "f32") continue;
    double worst = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const auto row = normal_row(128, seed);
      const auto stored = round_trip(each, row);
      for (int d = 0; d < 128; ++d) {
        worst = std::max(worst, double{std::fabs(stored.row[d] - row[d])} / largest(row));
      }
    }
    EXPECT_GT(worst, each.stored_bound.relative * 0.5) << each.name;
  }
}

TEST(Codecs, ZeroRowsAreExact) {
  for (const Codec& each : codecs()) {
    for (int dim : kDims) {
      for (float zero : {0.0f, -0.0f}) {
        const auto stored = round_trip(each, std::vector<float>(dim, zero));
        EXPECT_EQ(stored.clamped, 0);
        for (float x : stored.row) ASSERT_EQ(x, 0.0f) << each.name;
      }
    }
  }
}

TEST(Codecs, EqualValuesThatAreF16NumbersAreExactWithAMinimum) {
  for (const char* name : {"int8:g32:asym", "int4:g64:asym"}) {
    for (float value : {1.0f, -2.5f, 0x1p-24f, 65504.0f, -65504.0f, 0.333251953125f}) {
      for (float x : round_trip(codec(name), std::vector<float>(70, value)).row) {
        ASSERT_EQ(x, value) << name;
      }
    }
    // Others come closer than the rounding of an f16 would.
    for (float value : {1e-3f, -0.1f, 3.14159f, -1234.567f}) {
      for (float x : round_trip(codec(name), std::vector<float>(70, value)).row) {
        ASSERT_NEAR(x, value, std::fabs(value) * 0x1p-12f) << name;
      }
    }
  }
}

TEST(Codecs, SymmetricCodesKeepTheLargestValueAndNegation) {
  for (const char* name : {"int8:g32", "int4:g32", "int4:g128"}) {
    // The largest magnitude is a code times an f16 number: exact.
    const auto row = normal_row(128, 9, 0.2f);
    auto exact = row;
    for (float& x : exact) x = std::clamp(x, -1.0f, 1.0f);
    exact[77] = -127.0f * 7 / 64;
    EXPECT_EQ(round_trip(codec(name), exact).row[77], exact[77]) << name;
    auto negative = row;
    for (float& x : negative) x = -x;
    const auto stored = round_trip(codec(name), row).row;
    const auto mirrored = round_trip(codec(name), negative).row;
    for (int d = 0; d < 128; ++d) ASSERT_EQ(stored[d], -mirrored[d]) << name;
  }
}

TEST(Codecs, GroupsDoNotTouchEachOther) {
  for (const auto& [name, group] : {std::pair{"int8:g32", 32},
                                    {"int8:g64:asym", 64},
                                    {"int4:g32", 32},
                                    {"int4:g128:asym", 128}}) {
    const int dim = group + 20;
    const auto row = normal_row(dim, 3);
    auto outlier = row;
    outlier[dim - 1] = 1e5f;  // of the short last group
    const auto plain = round_trip(codec(name), row);
    const auto other = round_trip(codec(name), outlier);
    EXPECT_EQ(other.clamped, 0) << name;
    EXPECT_NEAR(other.row[dim - 1], 1e5f, 1e5f * 1e-3f) << name;
    for (int d = 0; d < group; ++d) ASSERT_EQ(plain.row[d], other.row[d]) << name;
  }
}

// A short last group has the codes of a row that holds it alone.
TEST(Codecs, TheLastGroupMayBeShort) {
  for (const Codec& each : codecs()) {
    if (each.name.find(":g") == std::string_view::npos) continue;  // a scale for groups
    for (int rest : {1, 2, 3, 7, 20, 31}) {
      const auto row = normal_row(128 + rest, 5);
      const auto stored = round_trip(each, row).row;
      const auto alone = round_trip(each, {row.begin() + 128, row.end()}).row;
      for (int d = 0; d < rest; ++d) ASSERT_EQ(stored[128 + d], alone[d]) << each.name;
    }
  }
}

TEST(Codecs, SaturationsAreCountedAndFinite) {
  const float huge = std::numeric_limits<float>::max();
  const struct {
    const char* name;
    std::vector<float> row;
    int clamped;
  } cases[] = {
      {"f32", {huge, -huge, 1}, 0},
      {"f16", {65504, -65504, 65505, -1e5f, huge}, 3},
      {"bf16", {kBf16Max, 3.39e38f, huge, -huge}, 3},
      {"fp8:e4m3", {448, -448, 449, -1000, huge, 1}, 3},
      {"int8:g32", {8e6f, 1}, 0},
      {"int8:g32", {1e7f, -1e7f, 8e6f, 1}, 2},
      {"int4:g32", {458528, 1}, 0},
      {"int4:g32", {458600, -1e30f, 1}, 2},
      {"int8:g32:asym", {-65504, 1e7f}, 0},
      {"int8:g32:asym", {-1e5f, 0, 5}, 1},
      {"int8:g32:asym", {-huge, huge, huge, 0}, 3},
      {"int4:g32:asym", {0, 15 * 65504.0f, 15 * 65504.0f + 1e5f}, 1},
  };
  for (const auto& each : cases) {
    const RoundTrip stored = round_trip(codec(each.name), each.row);
    EXPECT_EQ(stored.clamped, each.clamped) << each.name << " of " << each.row[0];
    for (float x : stored.row) EXPECT_TRUE(std::isfinite(x)) << each.name;
  }
  // What is clamped stands at the end of the range, and its neighbours are unharmed.
  EXPECT_EQ(round_trip(codec("f16"), {1e6f, -1e6f, 1.5f}).row,
            (std::vector<float>{65504, -65504, 1.5f}));
  EXPECT_EQ(round_trip(codec("fp8:e4m3"), {1e6f, -449.0f, 1.5f}).row,
            (std::vector<float>{448, -448, 1.5f}));
}

TEST(Codecs, RowsWithinClampAtAreNotClamped) {
  for (const Codec& each : codecs()) {
    const double clamp_at = each.stored_bound.clamp_at;
    if (std::isinf(clamp_at)) continue;
    const auto end = static_cast<float>(clamp_at);
    auto row = normal_row(100, 1);
    row[7] = end;
    row[99] = -end;
    const RoundTrip within = round_trip(each, row);
    EXPECT_EQ(within.clamped, 0) << each.name;
    for (int d = 0; d < 100; ++d) {
      ASSERT_LE(std::fabs(double{within.row[d]} - row[d]), each.stored_bound.of(clamp_at))
          << each.name << ", channel " << d;
    }
    row[99] = -end * 1.05f;
    EXPECT_EQ(round_trip(each, row).clamped, 1) << each.name;
  }
}

TEST(Codecs, FormatsWithoutClampAtKeepTheirBoundToTheEnd) {
  const float huge = std::numeric_limits<float>::max();
  for (const char* name : {"f32", "bf16"}) {
    EXPECT_TRUE(std::isinf(codec(name).stored_bound.clamp_at)) << name;
    for (float x : round_trip(codec(name), {huge, huge}).row) {
      EXPECT_LE(double{huge} - x, codec(name).stored_bound.of(huge)) << name;
    }
  }
}

TEST(Codecs, EncodingSurvivesWhatTheEngineWillRefuse) {
  // The engine refuses the step after encoding; the codec must not read or write elsewhere.
  for (const Codec& each : codecs()) {
    for (float bad : {static_cast<float>(NAN), static_cast<float>(INFINITY), -INFINITY}) {
      auto row = normal_row(70, 1);
      row[0] = row[40] = row[69] = bad;
      for (const TileForm& form : {each.k, each.v}) round_trip(each, form, row);
    }
  }
}

TEST(Codecs, NibblesLieInHalvesOfTheGroup) {
  // The documented order: byte j: channel j low, channel j + ⌈n/2⌉ high. Steps of 1 from 0 on.
  const Codec& int4 = codec("int4:g32:asym");
  std::vector<float> row(33, 0.0f);
  row[0] = 15;
  row[16] = 1;
  row[15] = 11;
  row[31] = 7;
  row[32] = 2;
  std::vector<std::byte> tile(int4.k.tile(33).bytes, std::byte{0xff});
  int4.k.encode(row.data(), 33, tile.data(), 0);
  const std::byte* codes = tile.data() + int4.scale_bytes(33);
  EXPECT_EQ(codes[0], std::byte{0x1f});
  EXPECT_EQ(codes[15], std::byte{0x7b});
  EXPECT_EQ(codes[16], std::byte{0x00});  // a group of one is its minimum; the high nibble is 0
}

}  // namespace
}  // namespace kvmark
