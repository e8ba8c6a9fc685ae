#include "engines/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engines/attention/cache_testing.h"
#include "engines/codecs/simd.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

const Codec& codec(std::string_view name) {
  const Codec* found = find_codec(name);
  check(found != nullptr, "no codec {}", name);
  return *found;
}

// Attention of `rows` rows from position `first` on, as one piece.
std::vector<float> attend(AttentionDriver& driver, const AttentionShape& shape,
                          std::span<const Span> spans, const float* q, int first, int rows) {
  std::vector<float> out(int64_t{rows} * shape.heads * shape.v_dim, NAN);
  const QueryPiece piece{spans, first, rows, q, out.data()};
  driver.attend({&piece, 1});
  return out;
}

std::vector<float> random_queries(const AttentionShape& shape, int rows, uint64_t seed,
                                  float scale = 1.5f) {
  return random_floats(int64_t{rows} * shape.heads * shape.k_dim, seed,
                       scale / std::sqrt(static_cast<float>(shape.k_dim)));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return bits_of(x) == bits_of(y); });
}

TEST(Attention, EveryCodecAndHeadDimAgreesWithTheReference) {
  ThreadPool pool(2);
  for (const Codec& format : codecs()) {
    for (int dim : {64, 80, 96, 100, 128, 20, 8, 5}) {
      const AttentionShape shape{.heads = 4, .kv_heads = 2, .k_dim = dim, .v_dim = dim};
      TestCache cache(shape, format, format, 80, 16);
      cache.append_random(70, dim);
      AttentionDriver driver(shape, format, format, 70, 80, pool);
      const auto q = random_queries(shape, 70, 7);
      const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), 0, 70);
      EXPECT_LE(relative_rms(out, cache.reference(q.data(), 0, 70)), format.tolerance)
          << format.name << " of " << dim;
    }
  }
}

TEST(Attention, KeysAndValuesMayDifferInFormatAndDimension) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 6, .kv_heads = 3, .k_dim = 48, .v_dim = 72};
  const Codec &k = codec("int8:g64:asym"), &v = codec("int4:g32");
  TestCache cache(shape, k, v, 50);
  cache.append_random(41, 3);
  AttentionDriver driver(shape, k, v, 41, 50, pool);
  const auto q = random_queries(shape, 41, 4);
  const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), 0, 41);
  EXPECT_LE(relative_rms(out, cache.reference(q.data(), 0, 41)),
            std::max(k.tolerance, v.tolerance));
}

// As if the caller had done it to each row before. A group may be larger than a block of rows.
TEST(Attention, QueriesAreTurnedToTheirPositionsAndScaled) {
  ThreadPool pool(2);
  for (const AttentionShape& shape :
       {AttentionShape{6, 2, 20, 20}, AttentionShape{2 * kBlock, 1, 24, 8}}) {
    constexpr int kFirst = 30, kNew = 21, kLength = kFirst + kNew;
    const Codec& f32 = codec("f32");
    TestCache cache(shape, f32, f32, kLength);
    cache.append_random(kLength, 3);
    const RopeTable table({.theta = 100, .dims = 16, .pairing = RopePairing::halves}, kLength);
    const float scale = 0.3f;
    const auto q = random_queries(shape, kNew, 4);
    std::vector<float> turned(q.size());
    const int row_floats = shape.heads * shape.k_dim;
    for (int row = 0; row < kNew; ++row) {
      rotate_heads(chosen_simd_target())(q.data() + row * row_floats, shape.heads, shape.k_dim,
                                         table.at(kFirst + row), scale,
                                         turned.data() + row * row_floats);
    }
    AttentionDriver plain(shape, f32, f32, kNew, kLength, pool);
    AttentionDriver turning(shape, f32, f32, kNew, kLength, pool, {&table, scale});
    EXPECT_TRUE(same_bits(attend(turning, shape, {&cache.span(), 1}, q.data(), kFirst, kNew),
                          attend(plain, shape, {&cache.span(), 1}, turned.data(), kFirst, kNew)));
  }
}

TEST(Attention, SizesAroundBlocksAndSplits) {
  ThreadPool pool(3);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .k_dim = 16, .v_dim = 16};
  const Codec& f32 = codec("f32");
  AttentionDriver driver(shape, f32, f32, 4, 3 * kSplit + 1, pool);
  for (int block : {0, 16, 48, 64}) {
    TestCache cache(shape, f32, f32, 3 * kSplit + 1, block, true);
    int appended = 0;
    for (int length : {1, 2, kBlock - 1, kBlock, kBlock + 1, kSplit - 1, kSplit, kSplit + 1,
                       kSplit + kBlock, 3 * kSplit, 3 * kSplit + 1}) {
      cache.append_random(length - appended, length);
      appended = length;
      const auto q = random_queries(shape, 1, length);
      const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), length - 1, 1);
      EXPECT_LE(relative_rms(out, cache.reference(q.data(), length - 1, 1)), 1e-5)
          << length << " rows, block " << block;
    }
  }
}

// Rows by turns flat and peaked: of every third one scores exceed the softmax's reference again and
// again, of the others hardly ever, so that what one query needs must not touch the next.
std::vector<float> flat_and_peaked(const AttentionShape& shape, int rows, uint64_t seed) {
  auto q = random_queries(shape, rows, seed);
  const int64_t row_floats = int64_t{shape.heads} * shape.k_dim;
  for (int64_t i = 0; i < std::ssize(q); ++i) q[i] *= i / row_floats % 3 == 0 ? 20.0f : 1.0f;
  return q;
}

// The outputs of a prefill of two splits, and every other way to get them.
class SameBits : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kRows = kSplit + 33;
  const AttentionShape shape_{.heads = 6, .kv_heads = 2, .k_dim = 40, .v_dim = 24};
  const Codec& codec_ = codec(GetParam());
  const std::vector<float> q_ = flat_and_peaked(shape_, kRows, 5);
  const int q_row_ = shape_.heads * shape_.k_dim;
  const int out_row_ = shape_.heads * shape_.v_dim;

  std::vector<float> whole(int threads, int block, bool shuffled) const {
    ThreadPool pool(threads);
    TestCache cache(shape_, codec_, codec_, kRows, block, shuffled);
    cache.append_random(kRows, 6);
    AttentionDriver driver(shape_, codec_, codec_, kRows, kRows, pool);
    return attend(driver, shape_, {&cache.span(), 1}, q_.data(), 0, kRows);
  }
};

TEST_P(SameBits, ForAnyThreadsAndAnyPlaceOfTheRows) {
  const auto expected = whole(1, 0, false);
  EXPECT_TRUE(same_bits(whole(2, 0, false), expected));
  EXPECT_TRUE(same_bits(whole(7, 16, false), expected));
  EXPECT_TRUE(same_bits(whole(1, 48, true), expected));
  if (codec_.k.tile(shape_.k_dim).tokens > 1) return;
  // Tiles of one row fit into any block.
  EXPECT_TRUE(same_bits(whole(1, 17, true), expected));
  EXPECT_TRUE(same_bits(whole(3, 1, true), expected));
}

// Long enough that the two KV heads of short pages take turns on one thread and on two, while those
// of one long block do not.
TEST_P(SameBits, WhereHeadsTakeTurns) {
  const int rows = 8 * kSplit + 5;
  const auto last_row = [&](int threads, int block) {
    ThreadPool pool(threads);
    TestCache cache(shape_, codec_, codec_, rows, block, true);
    cache.append_random(rows, 6);
    AttentionDriver driver(shape_, codec_, codec_, 1, rows, pool);
    return attend(driver, shape_, {&cache.span(), 1}, q_.data(), rows - 1, 1);
  };
  const auto expected = last_row(1, 0);
  EXPECT_TRUE(same_bits(last_row(1, 16), expected));
  EXPECT_TRUE(same_bits(last_row(2, 16), expected));
  EXPECT_TRUE(same_bits(last_row(2, 48), expected));
  EXPECT_TRUE(same_bits(last_row(3, 0), expected));
}

// Items of several rows under several heads, the last one under fewer.
TEST_P(SameBits, WhereHeadsOfSomeRowsTakeTurns) {
  const AttentionShape shape{.heads = 10, .kv_heads = 5, .k_dim = 40, .v_dim = 24};
  const int length = 2 * kSplit + 7, rows = 9;
  const auto q = flat_and_peaked(shape, rows, 8);
  const auto last_rows = [&](int block) {
    ThreadPool pool(1);
    TestCache cache(shape, codec_, codec_, length, block, true);
    cache.append_random(length, 6);
    AttentionDriver driver(shape, codec_, codec_, rows, length, pool);
    return attend(driver, shape, {&cache.span(), 1}, q.data(), length - rows, rows);
  };
  EXPECT_TRUE(same_bits(last_rows(16), last_rows(0)));
}

TEST_P(SameBits, ForAnyCutOfThePrefill) {
  const auto expected = whole(1, 0, false);
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int piece : {1, 5, 33, kRows - 1}) {
      // Appended as it goes: what lies behind the last row is NaN and must not be seen.
      TestCache cache(shape_, codec_, codec_, kRows, 16);
      AttentionDriver driver(shape_, codec_, codec_, piece, kRows, pool);
      std::vector<float> out;
      const auto k = random_floats(int64_t{kRows} * shape_.kv_heads * shape_.k_dim, 6);
      const auto v = random_floats(int64_t{kRows} * shape_.kv_heads * shape_.v_dim, 7);
      for (int first = 0; first < kRows; first += piece) {
        const int rows = std::min(piece, kRows - first);
        for (int row = first; row < first + rows; ++row) {
          cache.append(k.data() + row * shape_.kv_heads * shape_.k_dim,
                       v.data() + row * shape_.kv_heads * shape_.v_dim);
        }
        const auto part =
            attend(driver, shape_, {&cache.span(), 1}, q_.data() + first * q_row_, first, rows);
        out.insert(out.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(same_bits(out, expected)) << "pieces of " << piece << ", threads " << threads;
    }
  }
}

TEST_P(SameBits, ForAnyBatch) {
  const auto expected = whole(1, 0, false);
  ThreadPool pool(2);
  const std::vector<int> lengths = {1, 3, 17, 40, kRows, 0, 33};
  std::vector<TestCache> caches;
  for (int length : lengths) {
    caches.emplace_back(shape_, codec_, codec_, kRows, 16);
    const auto k = random_floats(int64_t{kRows} * shape_.kv_heads * shape_.k_dim, 6);
    const auto v = random_floats(int64_t{kRows} * shape_.kv_heads * shape_.v_dim, 7);
    for (int row = 0; row < length; ++row) {
      caches.back().append(k.data() + row * shape_.kv_heads * shape_.k_dim,
                           v.data() + row * shape_.kv_heads * shape_.v_dim);
    }
  }
  AttentionDriver driver(shape_, codec_, codec_, 16, kRows, pool);
  std::vector<std::vector<float>> outs;
  std::vector<QueryPiece> pieces;
  outs.reserve(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int rows = std::min(lengths[i], 2);
    const int first = lengths[i] - rows;
    outs.emplace_back(rows * out_row_);
    pieces.push_back(
        {{&caches[i].span(), 1}, first, rows, q_.data() + first * q_row_, outs.back().data()});
  }
  driver.attend(pieces);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto* from = expected.data() + pieces[i].first_position * out_row_;
    EXPECT_TRUE(same_bits(outs[i], {from, from + outs[i].size()})) << "length " << lengths[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, SameBits,
                         testing::Values("f32", "f16", "int8:g32", "int4:g64", "int8:g32:asym"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(Attention, ConstantValuesComeBackForEveryQuery) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 4, .kv_heads = 4, .k_dim = 32, .v_dim = 20};
  const Codec& f32 = codec("f32");
  TestCache cache(shape, f32, f32, 700);
  const auto k = random_floats(int64_t{700} * shape.kv_heads * shape.k_dim, 1);
  const std::vector<float> v(shape.kv_heads * shape.v_dim, 3.25f);
  for (int row = 0; row < 700; ++row) {
    cache.append(k.data() + int64_t{row} * shape.kv_heads * shape.k_dim, v.data());
  }
  AttentionDriver driver(shape, f32, f32, 700, 700, pool);
  const auto q = random_queries(shape, 700, 2);
  for (float x : attend(driver, shape, {&cache.span(), 1}, q.data(), 0, 700)) {
    ASSERT_NEAR(x, 3.25f, 3.25f * 2e-6f);
  }
}

TEST(Attention, QueryHeadReadsItsKvHead) {
  ThreadPool pool(2);
  const Codec& f32 = codec("f32");
  for (auto [heads, kv_heads] : {std::pair{8, 2}, {8, 8}, {9, 3}, {6, 1}, {15, 5}, {96, 1}}) {
    const AttentionShape shape{heads, kv_heads, 16, 8};
    TestCache cache(shape, f32, f32, 40);
    std::vector<float> v(kv_heads * shape.v_dim);
    for (int i = 0; i < kv_heads * shape.v_dim; ++i) v[i] = static_cast<float>(i / shape.v_dim);
    const auto k = random_floats(int64_t{40} * kv_heads * shape.k_dim, 1);
    for (int row = 0; row < 40; ++row) {
      cache.append(k.data() + int64_t{row} * kv_heads * shape.k_dim, v.data());
    }
    AttentionDriver driver(shape, f32, f32, 2, 40, pool);
    const auto q = random_queries(shape, 2, 2);
    const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), 38, 2);
    for (int i = 0; i < 2 * heads * shape.v_dim; ++i) {
      const int head = i / shape.v_dim % heads;
      ASSERT_NEAR(out[i], head / (heads / kv_heads), 1e-5) << heads << ":" << kv_heads;
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .k_dim = 64, .v_dim = 64};
  for (const char* name : {"f32", "f16"}) {
    TestCache cache(shape, codec(name), codec(name), 600);
    cache.append_random(600, 1, 300.0f);
    AttentionDriver driver(shape, codec(name), codec(name), 1, 600, pool);
    // Unscaled, |q·k| passes 1e5; the driver sees it divided by √64.
    const auto q = random_queries(shape, 1, 2, 300.0f);
    const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), 599, 1);
    // One row takes nearly all: the error of its score, some 1e5 · 2^−24, is what counts.
    EXPECT_LE(relative_rms(out, cache.reference(q.data(), 599, 1)), 2e-3) << name;
  }
}

TEST(Attention, LongContextsKeepTheirPrecision) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .k_dim = 8, .v_dim = 8};
  for (const char* name : {"f32", "f16"}) {
    TestCache cache(shape, codec(name), codec(name), 65536, 16, true);
    cache.append_random(65536, 1);
    AttentionDriver driver(shape, codec(name), codec(name), 1, 65536, pool);
    const auto q = random_queries(shape, 1, 2);
    const auto out = attend(driver, shape, {&cache.span(), 1}, q.data(), 65535, 1);
    EXPECT_LE(relative_rms(out, cache.reference(q.data(), 65535, 1)), 1e-5) << name;
  }
}

TEST(Attention, GapsBetweenSpansAreNotSeen) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .k_dim = 16, .v_dim = 16};
  const Codec& f32 = codec("f32");
  TestCache cache(shape, f32, f32, 1200);
  cache.append_random(1200, 1);
  // Positions 0–3 (sinks) and 700–1199; the same rows once more in a cache that has no others.
  std::vector<Span> spans(2, cache.span());
  spans[0].count = 4;
  spans[1].first_slot = spans[1].first_position = 700;
  spans[1].count = 500;
  TestCache kept(shape, f32, f32, 1200);
  const auto k = random_floats(int64_t{1200} * shape.k_dim, 1);
  const auto v = random_floats(int64_t{1200} * shape.v_dim, 2);
  for (int row = 0; row < 1200; ++row) {
    if (row < 4 || row >= 700)
      kept.append(k.data() + row * shape.k_dim, v.data() + row * shape.v_dim);
  }
  AttentionDriver driver(shape, f32, f32, 2, 1200, pool);
  const auto q = random_queries(shape, 2, 3);
  const auto out = attend(driver, shape, spans, q.data(), 1198, 2);
  EXPECT_LE(relative_rms(out, kept.reference(q.data(), 502, 2)), 1e-5);
  std::reverse(spans.begin(), spans.end());
  EXPECT_THROW(attend(driver, shape, spans, q.data(), 1198, 2), LogicError);
}

TEST(Attention, ARowThatSeesNothingGetsZeros) {
  ThreadPool pool(2);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .k_dim = 16, .v_dim = 16};
  const Codec& f32 = codec("f32");
  TestCache cache(shape, f32, f32, 100);
  cache.append_random(100, 1);
  Span tail = cache.span();
  tail.first_slot = tail.first_position = 50;
  tail.count = 50;
  AttentionDriver driver(shape, f32, f32, 100, 100, pool);
  const auto q = random_queries(shape, 100, 2);
  const auto out = attend(driver, shape, {&tail, 1}, q.data(), 0, 100);
  const int row = shape.heads * shape.v_dim;
  EXPECT_THAT(std::vector<float>(out.begin(), out.begin() + 50 * row), testing::Each(0.0f));
  // Row 50 sees itself alone: its value.
  std::vector<float> value(shape.v_dim);
  f32.v.decode(cache.span().v_tile(0, 50), 50 % kTileRows, shape.v_dim, value.data());
  for (int i = 0; i < row; ++i) EXPECT_EQ(out[50 * row + i], value[i % shape.v_dim]);
  for (float x : out) ASSERT_TRUE(std::isfinite(x));
  EXPECT_THAT(attend(driver, shape, {}, q.data(), 0, 100), testing::Each(0.0f));
}

TEST(Attention, MisuseIsRefused) {
  ThreadPool pool(1);
  const Codec& f32 = codec("f32");
  EXPECT_THROW(AttentionDriver({9, 2, 8, 8}, f32, f32, 1, 1, pool), LogicError);
  EXPECT_THROW(AttentionDriver({2, 0, 8, 8}, f32, f32, 1, 1, pool), LogicError);
  const AttentionShape shape{2, 1, 8, 8};
  AttentionDriver driver(shape, f32, f32, 2, 10, pool);
  const auto q = random_queries(shape, 3, 1);
  EXPECT_THROW(attend(driver, shape, {}, q.data(), 0, 3), LogicError);
  EXPECT_THROW(attend(driver, shape, {}, q.data(), 9, 2), LogicError);
  driver.attend({});
}

}  // namespace
}  // namespace kvmark
