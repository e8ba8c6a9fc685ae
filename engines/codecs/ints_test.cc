// int8 and int4 with scales: their tiles, and their kernels on every SIMD target, which multiply
// integers where it has vectors: bytes on one of them, words on the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/codecs/simd.h"
#include "engines/core/bits.h"

namespace kvmark {
namespace {

constexpr const char* kNames[] = {"int8:g32", "int8:g64", "int8:g128",
                                  "int4:g32", "int4:g64", "int4:g128"};

const Codec& codec_for(int64_t target, std::string_view name) {
  for (const Codec& codec : codecs_of(target)) {
    if (codec.name == name) return codec;
  }
  throw std::runtime_error("no codec " + std::string(name));
}

// What rows of keys and values, and queries, may look like.
using Numbers = std::function<float(std::mt19937_64&)>;
float normal(std::mt19937_64& generator) { return std::normal_distribution<float>()(generator); }
float tiny(std::mt19937_64& generator) { return 1e-6f * normal(generator); }
float huge(std::mt19937_64& generator) { return 1e4f * normal(generator); }
float with_outliers(std::mt19937_64& generator) {
  return (generator() % 50 == 0 ? 30.0f : 1.0f) * normal(generator);
}
std::vector<float> numbers(int64_t n, uint64_t seed, const Numbers& number = normal) {
  std::mt19937_64 generator(seed);
  std::vector<float> values(n);
  for (float& x : values) x = number(generator);
  return values;
}
// As softmax leaves them: most rows count little, some not at all.
std::vector<float> probabilities(int64_t n, uint64_t seed) {
  auto p = numbers(n, seed);
  for (float& x : p) x = x < -1.5f ? 0.0f : std::exp(2 * x - 6);
  return p;
}

// One side of `slots` encoded rows in tiles whose other bytes are all ones: scales there are no
// numbers.
struct Stored {
  Stored(const TileForm& form, int dim, const std::vector<int>& slots, const Numbers& number)
      : tile(form.tile(dim)), decoded(slots.size() * dim) {
    memory.resize((slots.back() / tile.tokens + 1) * tile.bytes, std::byte{0xff});
    const auto rows = numbers(static_cast<int64_t>(slots.size()) * dim, dim + slots.size(), number);
    for (size_t i = 0; i < slots.size(); ++i) {
      std::byte* at = memory.data() + slots[i] / tile.tokens * tile.bytes;
      form.encode(&rows[i * dim], dim, at, slots[i] % tile.tokens);
    }
    // After all are written: a row must not have changed its neighbours.
    for (size_t i = 0; i < slots.size(); ++i) {
      const std::byte* at = memory.data() + slots[i] / tile.tokens * tile.bytes;
      form.decode(at, slots[i] % tile.tokens, dim, &decoded[i * dim]);
    }
  }
  // Rows from `slot` on, at positions from `at` on.
  TileRun run(int slot, int rows, int at) const {
    return {memory.data() + slot / tile.tokens * tile.bytes, slot % tile.tokens, rows, at, nullptr};
  }

  TileSpec tile;
  std::vector<std::byte> memory;
  std::vector<float> decoded;
};

std::vector<int> slots_from(int first, int rows) {
  std::vector<int> slots(rows);
  for (int i = 0; i < rows; ++i) slots[i] = first + i;
  return slots;
}

// Runs of at most `most` rows: `rows` rows from slot `first` on at positions from `at` on.
std::vector<TileRun> runs_of(const Stored& stored, int first, int rows, int at, int most) {
  std::vector<TileRun> runs;
  for (int done = 0; done < rows;) {
    const int slot = first + done;
    const int n = std::min({rows - done, most, kTileRows - slot % kTileRows});
    runs.push_back(stored.run(slot, n, at + done));
    done += n;
  }
  return runs;
}

constexpr float kUntouched = 42.0f;

std::vector<float> scores(const Codec& codec, const float* q, int queries, int dim,
                          const std::vector<TileRun>& runs) {
  const int64_t floats = codec.prepared_floats(dim);
  std::vector<float> prepared(queries * floats), scratch((kBlock + 1) * dim);
  for (int i = 0; i < queries; ++i) {
    codec.prepare(q + int64_t{i} * dim, dim, &prepared[i * floats]);
  }
  std::vector<float> s(queries * kBlock, kUntouched);
  codec.scores(prepared.data(), queries, dim, runs, s.data(), scratch.data());
  return s;
}

std::vector<float> accumulated(const Codec& codec, const float* p, int queries, int dim,
                               const std::vector<TileRun>& runs, std::vector<float> o) {
  std::vector<float> scratch((kBlock + 1) * dim);
  codec.accumulate(p, queries, dim, runs, o.data(), scratch.data());
  return o;
}

// RMS error of sums, relative to what sums of such terms are on average: `terms` is the sum of the
// terms' squares.
struct Error {
  double error = 0, norm = 0;
  void add(float actual, double expected, double terms) {
    error += (actual - expected) * (actual - expected);
    norm += terms;
  }
  double rms() const { return norm > 0 ? std::sqrt(error / norm) : error; }
};

struct Shape {
  int dim, first, rows, at, queries;
};

void expect_scores_right(const Codec& codec, const Shape& shape, const Numbers& number) {
  const auto& [dim, first, rows, at, queries] = shape;
  const Stored keys(codec.k, dim, slots_from(first, rows), number);
  const auto q = numbers(int64_t{queries} * dim, 2, number);
  const auto s = scores(codec, q.data(), queries, dim, runs_of(keys, first, rows, at, kTileRows));
  Error error;
  for (int i = 0; i < queries; ++i) {
    for (int position = 0; position < kBlock; ++position) {
      const int row = position - at;
      if (row < 0 || row >= rows) {
        ASSERT_EQ(s[i * kBlock + position], kUntouched) << codec.name;
        continue;
      }
      double dot = 0, squares = 0;
      for (int d = 0; d < dim; ++d) {
        const double term =
            double{q[int64_t{i} * dim + d]} * double{keys.decoded[int64_t{row} * dim + d]};
        dot += term;
        squares += term * term;
      }
      error.add(s[i * kBlock + position], dot, squares);
    }
  }
  EXPECT_LE(error.rms(), codec.tolerance)
      << codec.name << " of " << dim << ", " << rows << " rows from " << first << ", " << queries;
}

void expect_sums_right(const Codec& codec, const Shape& shape, const Numbers& number) {
  const auto& [dim, first, rows, at, queries] = shape;
  const Stored values(codec.v, dim, slots_from(first, rows), number);
  auto p = probabilities(queries * kBlock, 3);
  const std::vector<float> before(int64_t{queries} * dim, 0.0f);
  const auto o = accumulated(codec, p.data(), queries, dim,
                             runs_of(values, first, rows, at, kTileRows), before);
  Error error;
  for (int i = 0; i < queries; ++i) {
    for (int d = 0; d < dim; ++d) {
      double sum = 0, squares = 0;
      for (int r = 0; r < rows; ++r) {
        const double term =
            double{p[i * kBlock + at + r]} * double{values.decoded[int64_t{r} * dim + d]};
        sum += term;
        squares += term * term;
      }
      error.add(o[int64_t{i} * dim + d], sum, squares);
    }
  }
  EXPECT_LE(error.rms(), codec.tolerance)
      << codec.name << " of " << dim << ", " << rows << " rows from " << first << ", " << queries;
}

class EveryTarget : public testing::TestWithParam<int64_t> {
 protected:
  void for_each_codec(const std::function<void(const Codec&)>& visit) const {
    for (const char* name : kNames) visit(codec_for(GetParam(), name));
  }
};

// On every target that has vectors.
TEST_P(EveryTarget, HasIntegerKernels) {
  const std::string_view target = hwy::TargetName(GetParam());
  const bool generic = target == "SCALAR" || target == "EMU128";
  for_each_codec([&](const Codec& codec) {
    EXPECT_EQ(codec.kernel, generic ? "generic" : target);
    const bool nibbles_by_bytes = target == "AVX3_DL" && codec.name.starts_with("int4");
    EXPECT_EQ(codec.tolerance, generic ? 1e-5 : nibbles_by_bytes ? 3e-2 : 1e-3);
  });
}

TEST_P(EveryTarget, AgreesWithDoubleForAnyDim) {
  for_each_codec([](const Codec& codec) {
    for (int dim : {1,  2,  3,  5,  8,   15,  16,  17,  31,  32,  33,  48, 63,
                    64, 65, 80, 96, 100, 127, 128, 129, 144, 192, 255, 256}) {
      for (int queries : {1, 4}) {
        expect_scores_right(codec, {dim, 0, 32, 0, queries}, normal);
        expect_sums_right(codec, {dim, 0, 32, 0, queries}, normal);
      }
    }
  });
}

TEST_P(EveryTarget, AgreesWithDoubleForAnyRunsAndQueries) {
  for_each_codec([](const Codec& codec) {
    const Shape shapes[] = {{64, 0, 16, 0, 1},  {64, 16, 16, 16, 2}, {64, 0, 31, 0, 3},
                            {80, 3, 29, 3, 5},  {80, 3, 20, 0, 7},   {100, 9, 11, 21, 8},
                            {33, 15, 1, 31, 9}, {128, 5, 25, 7, 64}};
    for (const Shape& shape : shapes) {
      expect_scores_right(codec, shape, normal);
      expect_sums_right(codec, shape, normal);
    }
  });
}

TEST_P(EveryTarget, AgreesWithDoubleForAnyMagnitudes) {
  for_each_codec([](const Codec& codec) {
    for (const Numbers& number : {Numbers(tiny), Numbers(huge), Numbers(with_outliers)}) {
      for (int dim : {40, 64, 128}) {
        expect_scores_right(codec, {dim, 0, 32, 0, 4}, number);
        expect_sums_right(codec, {dim, 0, 32, 0, 4}, number);
      }
    }
  });
}

TEST_P(EveryTarget, AResultDoesNotDependOnTheCall) {
  for_each_codec([](const Codec& codec) {
    const int queries = 7, first = 2, rows = 30, at = 1;
    for (int dim : {24, 64, 100, 128}) {
      const Stored keys(codec.k, dim, slots_from(first, rows), normal);
      const Stored values(codec.v, dim, slots_from(first, rows), normal);
      const auto q = numbers(queries * dim, 2);
      const auto p = probabilities(queries * kBlock, 3);
      const auto o = numbers(queries * dim, 4);
      const auto all_scores =
          scores(codec, q.data(), queries, dim, runs_of(keys, first, rows, at, kTileRows));
      const auto all_sums = accumulated(codec, p.data(), queries, dim,
                                        runs_of(values, first, rows, at, kTileRows), o);
      for (int most : {1, 3, 5, kTileRows}) {
        const auto k_runs = runs_of(keys, first, rows, at, most);
        const auto v_runs = runs_of(values, first, rows, at, most);
        ASSERT_EQ(all_scores, scores(codec, q.data(), queries, dim, k_runs)) << codec.name << most;
        ASSERT_EQ(all_sums, accumulated(codec, p.data(), queries, dim, v_runs, o)) << codec.name;
        for (int i = 0; i < queries; ++i) {
          const auto s = scores(codec, &q[i * dim], 1, dim, k_runs);
          ASSERT_EQ(0, std::memcmp(s.data(), &all_scores[i * kBlock], kBlock * sizeof(float)))
              << codec.name << " of " << dim << " in runs of " << most;
          const auto sums = accumulated(codec, &p[i * kBlock], 1, dim, v_runs,
                                        {o.begin() + i * dim, o.begin() + (i + 1) * dim});
          ASSERT_EQ(0, std::memcmp(sums.data(), &all_sums[i * dim], dim * sizeof(float)))
              << codec.name << " of " << dim << " in runs of " << most;
        }
      }
    }
  });
}

// A whole block, which kernels treat apart, and the same rows in more runs, or other slots.
TEST_P(EveryTarget, AWholeBlockIsTheSumOfItsParts) {
  for_each_codec([](const Codec& codec) {
    for (int dim : {64, 80}) {
      for (int first : {16, 21}) {
        const Stored whole_k(codec.k, dim, slots_from(0, kBlock), normal);
        const Stored whole_v(codec.v, dim, slots_from(0, kBlock), normal);
        const Stored moved_k(codec.k, dim, slots_from(first, kBlock), normal);
        const Stored moved_v(codec.v, dim, slots_from(first, kBlock), normal);
        const auto q = numbers(3 * dim, 2);
        const auto p = probabilities(3 * kBlock, 3);
        const std::vector<float> o(3 * dim, 0.5f);
        const auto s = scores(codec, q.data(), 3, dim, runs_of(whole_k, 0, kBlock, 0, kTileRows));
        const auto sums =
            accumulated(codec, p.data(), 3, dim, runs_of(whole_v, 0, kBlock, 0, kTileRows), o);
        EXPECT_EQ(s, scores(codec, q.data(), 3, dim, runs_of(moved_k, first, kBlock, 0, 7)));
        EXPECT_EQ(sums,
                  accumulated(codec, p.data(), 3, dim, runs_of(moved_v, first, kBlock, 0, 7), o));
      }
    }
  });
}

TEST_P(EveryTarget, RowsThatAQueryDoesNotSeeDoNotCount) {
  for_each_codec([](const Codec& codec) {
    const int dim = 64;
    Stored values(codec.v, dim, slots_from(0, kBlock), normal);
    auto p = probabilities(kBlock, 3);
    for (int row = 20; row < kBlock; ++row) p[row] = 0;
    const auto runs = runs_of(values, 0, kBlock, 0, kTileRows);
    const std::vector<float> o(dim, 0.25f);
    const auto before = accumulated(codec, p.data(), 1, dim, runs, o);
    const auto large = numbers(dim, 7, huge);
    for (int row = 20; row < kBlock; ++row) {
      std::byte* tile = values.memory.data() + row / values.tile.tokens * values.tile.bytes;
      codec.v.encode(large.data(), dim, tile, row % values.tile.tokens);
    }
    EXPECT_EQ(before, accumulated(codec, p.data(), 1, dim, runs, o)) << codec.name;
    EXPECT_EQ(o, accumulated(codec, std::vector<float>(kBlock, 0.0f).data(), 1, dim, runs, o));
  });
}

TEST_P(EveryTarget, WhatIsNoNumberComesThrough) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for_each_codec([&](const Codec& codec) {
    for (int dim : {5, 16, 64, 80}) {
      const int rows = dim == 64 ? kBlock : 20;  // whole tiles, and a part of one
      const Stored keys(codec.k, dim, slots_from(0, rows), normal);
      const Stored values(codec.v, dim, slots_from(0, rows), normal);
      const auto k_runs = runs_of(keys, 0, rows, 0, kTileRows);
      const auto v_runs = runs_of(values, 0, rows, 0, kTileRows);
      for (const float none : {kNan, -kNan, kInf, -kInf}) {
        for (int query = 0; query < 4; ++query) {
          auto q = numbers(4 * dim, 2);
          q[query * dim + 4] = none;
          auto p = probabilities(4 * kBlock, 3);
          p[query * kBlock + 17] = std::abs(none);
          const auto s = scores(codec, q.data(), 4, dim, k_runs);
          const auto o =
              accumulated(codec, p.data(), 4, dim, v_runs, std::vector<float>(4 * dim, 0.0f));
          for (int i = 0; i < 4; ++i) {
            EXPECT_EQ(std::isfinite(s[i * kBlock + 3]), i != query) << codec.name << dim << none;
            EXPECT_EQ(std::isfinite(o[i * dim + 3]), i != query) << codec.name << dim << none;
          }
        }
      }
    }
  });
}

// All codes, queries and weights at their largest, of either sign: no integer sum overflows.
TEST_P(EveryTarget, TheLargestSumsAreRight) {
  const Numbers ups = [](std::mt19937_64&) { return 1.0f; };
  const Numbers downs = [](std::mt19937_64&) { return -1.0f; };
  for_each_codec([&](const Codec& codec) {
    const int dim = 256;
    for (const Numbers& stored : {ups, downs}) {
      const Stored keys(codec.k, dim, slots_from(0, kBlock), stored);
      const Stored values(codec.v, dim, slots_from(0, kBlock), stored);
      const float number = values.decoded[0];
      for (const float sign : {1.0f, -1.0f}) {
        const std::vector<float> q(dim, sign);
        const auto s = scores(codec, q.data(), 1, dim, runs_of(keys, 0, kBlock, 0, kTileRows));
        for (int r = 0; r < kBlock; ++r) {
          EXPECT_NEAR(s[r], sign * number * dim, codec.tolerance * dim) << codec.name;
        }
      }
      const std::vector<float> p(kBlock, 1.0f);
      const auto o = accumulated(codec, p.data(), 1, dim, runs_of(values, 0, kBlock, 0, kTileRows),
                                 std::vector<float>(dim, 0.0f));
      for (float sum : o) EXPECT_NEAR(sum, number * kBlock, codec.tolerance * kBlock) << codec.name;
    }
  });
}

// Kernels of two targets over the same bytes.
TEST_P(EveryTarget, AgreesWithTheOtherTargets) {
  for_each_codec([](const Codec& codec) {
    const Codec& other = codec_for(simd_targets().back(), codec.name);
    const int dim = 96, queries = 4;
    const Stored keys(other.k, dim, slots_from(0, kBlock), normal);
    const Stored values(other.v, dim, slots_from(0, kBlock), normal);
    ASSERT_EQ(keys.memory, Stored(codec.k, dim, slots_from(0, kBlock), normal).memory);
    ASSERT_EQ(values.memory, Stored(codec.v, dim, slots_from(0, kBlock), normal).memory);
    const auto q = numbers(queries * dim, 2);
    const auto p = probabilities(queries * kBlock, 3);
    const std::vector<float> zero(queries * dim, 0.0f);
    const auto k_runs = runs_of(keys, 0, kBlock, 0, kTileRows);
    const auto v_runs = runs_of(values, 0, kBlock, 0, kTileRows);
    Error scores_apart, sums_apart;
    const auto a = scores(codec, q.data(), queries, dim, k_runs);
    const auto b = scores(other, q.data(), queries, dim, k_runs);
    for (size_t i = 0; i < a.size(); ++i) scores_apart.add(a[i], b[i], double{b[i]} * b[i]);
    const auto x = accumulated(codec, p.data(), queries, dim, v_runs, zero);
    const auto y = accumulated(other, p.data(), queries, dim, v_runs, zero);
    for (size_t i = 0; i < x.size(); ++i) sums_apart.add(x[i], y[i], double{y[i]} * y[i]);
    const double tolerance = codec.tolerance + other.tolerance;
    EXPECT_LE(scores_apart.rms(), tolerance) << codec.name;
    EXPECT_LE(sums_apart.rms(), tolerance) << codec.name;
  });
}

INSTANTIATE_TEST_SUITE_P(Ints, EveryTarget, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

// The documented order of codes in a tile, and that a row touches nothing else.
std::vector<uint8_t> tile_with_row(const TileForm& form, const std::vector<float>& row, int slot) {
  const auto dim = static_cast<int>(row.size());
  std::vector<uint8_t> tile(form.tile(dim).bytes, 0xee);
  form.encode(row.data(), dim, reinterpret_cast<std::byte*>(tile.data()), slot);
  return tile;
}

TEST(IntTiles, KeysLieInQuadsOfChannels) {
  // 34 channels: two groups of 32 and 2; scales 2 · 16 · 2 bytes. A row of magnitude 127 (7) at
  // most in each group has codes that are its values.
  std::vector<float> row(34, 1.0f);
  row[0] = 127;
  row[33] = -127;
  const auto int8 = tile_with_row(find_codec("int8:g32")->k, row, 5);
  ASSERT_EQ(int8.size(), 64u + 9 * 64);
  const auto* scales = reinterpret_cast<const uint16_t*>(int8.data());
  EXPECT_EQ(scales[5], f32_to_f16(1.0f));
  EXPECT_EQ(scales[16 + 5], f32_to_f16(1.0f));
  EXPECT_EQ(scales[4], 0xeeee);
  EXPECT_EQ(int8[64 + 5 * 4], 255);                // channel 0
  EXPECT_EQ(int8[64 + 5 * 4 + 1], 129);            // channel 1
  EXPECT_EQ(int8[64 + 8 * 64 + 5 * 4 + 1], 1);     // channel 33
  EXPECT_EQ(int8[64 + 8 * 64 + 4 * 4 + 3], 0xee);  // of the row before

  row[0] = 7;
  row[4] = -2;
  row[33] = -7;
  const auto int4 = tile_with_row(find_codec("int4:g32")->k, row, 5);
  ASSERT_EQ(int4.size(), 64u + 5 * 64);
  EXPECT_EQ(int4[64 + 5 * 4], 0x6f);               // channels 0 and 4
  EXPECT_EQ(int4[64 + 4 * 64 + 5 * 4 + 1], 0x81);  // channel 33, and none
  EXPECT_EQ(int4[64 + 4 * 64 + 6 * 4], 0xee);
}

TEST(IntTiles, ValuesLieInQuadsOfRows) {
  std::vector<float> row(35, 1.0f);
  row[17] = -127;
  row[34] = 127;
  // Slot 6: the second quad of rows, its third row.
  const auto int8 = tile_with_row(find_codec("int8:g32")->v, row, 6);
  ASSERT_EQ(int8.size(), 64u + 35 * 16);
  EXPECT_EQ(int8[64 + 256 + 64 + 1 * 4 + 2], 0x81);         // channel 17: unit 1
  EXPECT_EQ(int8[64 + 2 * 256 + 3 * 4 + 2 * 4 + 2], 0x7f);  // channel 34: a unit of three
  EXPECT_EQ(int8[64 + 256 + 64 + 1 * 4 + 1], 0xee);

  row[0] = -7;
  row[16] = 2;
  row[17] = 3;
  row[32] = 7;
  row[33] = -7;
  row[34] = -1;
  const auto int4 = tile_with_row(find_codec("int4:g32")->v, row, 6);
  ASSERT_EQ(int4.size(), 64u + 18 * 16);
  EXPECT_EQ(int4[64 + 64 + 2], 0x29);                   // channels 0 and 16
  EXPECT_EQ(int4[64 + 256 + 2 * 4 + 2], 0xf7);          // channels 32 and 34
  EXPECT_EQ(int4[64 + 256 + 2 * 4 + 1 * 4 + 2], 0x09);  // channel 33, and none
  EXPECT_EQ(int4[64 + 256 + 2 * 4 + 1 * 4 + 3], 0xee);
}

}  // namespace
}  // namespace kvmark
