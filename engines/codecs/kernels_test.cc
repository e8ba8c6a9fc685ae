// The generic kernels, on every SIMD target of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engines/codecs/codec.h"
#include "engines/codecs/simd.h"
#include "engines/core/check.h"

// After simd.h, which tells Highway what to leave out.
#include "engines/codecs/generic-inl.h"

namespace kvmark {
namespace {

std::vector<float> normal_floats(int64_t n, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = normal(generator);
  return values;
}

// `rows` encoded rows from slot `first` of a run of tiles on.
struct StoredRows {
  StoredRows(const Codec& codec, int dim, int first, int rows, uint64_t seed)
      : tile(codec.tile(dim)),
        memory((first + rows + tile.tokens - 1) / tile.tokens * tile.bytes, std::byte{0xff}),
        decoded(int64_t{rows} * dim),
        run{memory.data(), first, rows} {
    const auto values = normal_floats(int64_t{rows} * dim, seed);
    for (int r = 0; r < rows; ++r) {
      const int slot = first + r;
      std::byte* at = memory.data() + slot / tile.tokens * tile.bytes;
      codec.encode(values.data() + int64_t{r} * dim, dim, at, slot % tile.tokens);
      codec.decode(at, slot % tile.tokens, dim, decoded.data() + int64_t{r} * dim);
    }
  }

  TileSpec tile;
  std::vector<std::byte> memory;
  std::vector<float> decoded;
  TileRun run;
};

std::vector<float> scores_of(const Codec& codec, const std::vector<float>& q, int queries, int dim,
                             const TileRun& run, int stride) {
  std::vector<float> scratch(kBlock * dim);
  std::vector<float> s(int64_t{queries} * stride, 42.0f);
  codec.scores(q.data(), dim, queries, dim, run, s.data(), stride, scratch.data());
  return s;
}

void expect_kernels_right(const Codec& codec, int dim, int first, int rows, int queries) {
  const StoredRows stored(codec, dim, first, rows, dim + rows);
  const auto q = normal_floats(int64_t{queries} * dim, 2);
  const int stride = rows + 3;
  const auto s = scores_of(codec, q, queries, dim, stored.run, stride);
  const auto p = normal_floats(int64_t{queries} * stride, 3);
  auto o = normal_floats(int64_t{queries} * (dim + 1), 4);
  const auto before = o;
  std::vector<float> scratch(kBlock * dim);
  codec.accumulate(p.data(), stride, queries, dim, stored.run, o.data(), dim + 1, scratch.data());

  double error = 0, norm = 0;
  const auto compare = [&](float actual, double expected) {
    error += (actual - expected) * (actual - expected);
    norm += expected * expected;
  };
  for (int i = 0; i < queries; ++i) {
    for (int r = 0; r < rows; ++r) {
      double dot = 0;
      for (int d = 0; d < dim; ++d) {
        dot += double{q[int64_t{i} * dim + d]} * double{stored.decoded[int64_t{r} * dim + d]};
      }
      compare(s[i * stride + r], dot);
    }
    for (int r = rows; r < stride; ++r) ASSERT_EQ(s[i * stride + r], 42.0f) << "behind the scores";
    for (int d = 0; d < dim; ++d) {
      double sum = before[i * (dim + 1) + d];
      for (int r = 0; r < rows; ++r) {
        sum += double{p[i * stride + r]} * double{stored.decoded[int64_t{r} * dim + d]};
      }
      compare(o[i * (dim + 1) + d], sum);
    }
    ASSERT_EQ(o[i * (dim + 1) + dim], before[i * (dim + 1) + dim]) << "behind the outputs";
  }
  EXPECT_LE(std::sqrt(error / norm), codec.tolerance)
      << codec.name << " of " << dim << ", " << rows << " rows, " << queries << " queries";
}

class EveryTarget : public testing::TestWithParam<int64_t> {};

TEST_P(EveryTarget, KernelsAgreeWithDouble) {
  for (const Codec& codec : codecs_of(GetParam())) {
    for (int dim : {1, 5, 8, 20, 64, 80, 96, 100, 128}) expect_kernels_right(codec, dim, 0, 32, 5);
    for (int rows : {1, 2, 3, 4, 7, 31}) expect_kernels_right(codec, 72, 1, rows, 3);
    for (int queries : {1, 2, 4, 7, 64}) expect_kernels_right(codec, 40, 0, 6, queries);
  }
}

TEST_P(EveryTarget, AResultDoesNotDependOnTheCall) {
  for (const Codec& codec : codecs_of(GetParam())) {
    for (int dim : {24, 100, 128}) {
      const int queries = 7;
      const StoredRows stored(codec, dim, 0, kBlock, 1);
      const auto q = normal_floats(queries * dim, 2);
      const auto whole = scores_of(codec, q, queries, dim, stored.run, kBlock);
      const auto p = normal_floats(queries * kBlock, 3);
      std::vector<float> scratch(kBlock * dim), o(queries * dim, 0.0f);
      codec.accumulate(p.data(), kBlock, queries, dim, stored.run, o.data(), dim, scratch.data());

      for (int cut : {1, 3, 4, 15}) {
        for (int i = 0; i < queries; ++i) {
          std::vector<float> one(dim, 0.0f);
          for (int first = 0; first < kBlock; first += cut) {
            TileRun part = stored.run;
            part.tiles += first / stored.tile.tokens * stored.tile.bytes;
            part.first_slot = first % stored.tile.tokens;
            part.rows = std::min(cut, kBlock - first);
            const auto s =
                scores_of(codec, {q.data() + i * dim, q.data() + (i + 1) * dim}, 1, dim, part, cut);
            ASSERT_EQ(0, std::memcmp(s.data(), whole.data() + i * kBlock + first,
                                     part.rows * sizeof(float)))
                << codec.name;
            codec.accumulate(p.data() + i * kBlock + first, kBlock, 1, dim, part, one.data(), dim,
                             scratch.data());
          }
          ASSERT_EQ(0, std::memcmp(one.data(), o.data() + i * dim, dim * sizeof(float)))
              << codec.name;
        }
      }
    }
  }
}

TEST_P(EveryTarget, ProbabilityZeroChangesNothing) {
  for (const Codec& codec : codecs_of(GetParam())) {
    const int dim = 100;
    const StoredRows stored(codec, dim, 0, 8, 1);
    auto o = normal_floats(dim, 2);
    const auto before = o;
    const std::vector<float> p(8, 0.0f);
    std::vector<float> scratch(kBlock * dim);
    codec.accumulate(p.data(), 8, 1, dim, stored.run, o.data(), dim, scratch.data());
    EXPECT_EQ(0, std::memcmp(o.data(), before.data(), dim * sizeof(float))) << codec.name;
  }
}

TEST_P(EveryTarget, StoresTheSameBytesAsTheFirst) {
  const auto first = codecs_of(simd_targets().front());
  const auto here = codecs_of(GetParam());
  ASSERT_EQ(first.size(), here.size());
  for (size_t i = 0; i < first.size(); ++i) {
    for (int dim : {5, 100, 128}) {
      const auto row = normal_floats(dim, dim);
      std::vector<std::byte> a(first[i].tile(dim).bytes), b(a.size());
      first[i].encode(row.data(), dim, a.data(), 0);
      here[i].encode(row.data(), dim, b.data(), 0);
      EXPECT_EQ(a, b) << first[i].name;
      std::vector<float> x(dim), y(dim);
      first[i].decode(a.data(), 0, dim, x.data());
      here[i].decode(a.data(), 0, dim, y.data());
      EXPECT_EQ(0, std::memcmp(x.data(), y.data(), dim * sizeof(float))) << first[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, EveryTarget, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

// Four tokens to a tile, channel by channel, as a format of whole tiles may have them: what the
// registered formats don't exercise yet.
struct FourTokens {
  static constexpr const char* kName = "four";
  static constexpr double kTolerance = 1e-5;
  static constexpr RowBound kStoredBound{1e-5, 0};

  static TileSpec tile(int dim) { return {.tokens = 4, .bytes = int64_t{dim} * 16, .align = 4}; }
  static int64_t scale_bytes(int /*dim*/) { return 0; }
  static int encode(const float* row, int dim, std::byte* tile, int slot) {
    for (int d = 0; d < dim; ++d) reinterpret_cast<float*>(tile)[d * 4 + slot] = row[d];
    return 0;
  }
  static void decode(const std::byte* tile, int slot, int dim, float* row) {
    for (int d = 0; d < dim; ++d) row[d] = reinterpret_cast<const float*>(tile)[d * 4 + slot];
  }
};

TEST(GenericKernels, TilesOfSeveralTokens) {
  const Codec codec = HWY_NAMESPACE::GenericKernels<FourTokens>::codec();
  for (int first : {0, 1, 3}) {
    for (int rows : {1, 4, 5, 13, 29}) expect_kernels_right(codec, 20, first, rows, 3);
  }
}

TEST(SimdTarget, IsTheBestOrTheOneAskedFor) {
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(choose_simd_target(targets, nullptr), targets.front());
  EXPECT_EQ(choose_simd_target(targets, ""), targets.front());
  for (int64_t target : targets) {
    EXPECT_EQ(choose_simd_target(targets, hwy::TargetName(target)), target);
  }
  EXPECT_EQ(codecs().data(), codecs_of(chosen_simd_target()).data());
  EXPECT_EQ(simd_target(), hwy::TargetName(chosen_simd_target()));
}

TEST(SimdTarget, AnUnknownNameIsAUsageErrorThatListsTheNames) {
  try {
    choose_simd_target(simd_targets(), "AVX9");
    FAIL() << "nothing was thrown";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("KVMARK_SIMD=AVX9"), std::string::npos) << text;
    for (int64_t target : simd_targets()) {
      EXPECT_NE(text.find(hwy::TargetName(target)), std::string::npos) << text;
    }
  }
  EXPECT_THROW(codecs_of(0), LogicError);
}

}  // namespace
}  // namespace kvmark
