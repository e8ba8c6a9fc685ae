// The kernels of every format, on every SIMD target of this machine.
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

// `rows` encoded rows on one side of a format, from slot `first` of a row of tiles on. What holds
// no row is NaN in every format (bytes 0xff).
struct StoredRows {
  StoredRows(const TileForm& form, int dim, int first, int rows, uint64_t seed)
      : tile(form.tile(dim)),
        first(first),
        rows(rows),
        memory((first + rows + tile.tokens - 1) / tile.tokens * tile.bytes, std::byte{0xff}),
        decoded(int64_t{rows} * dim) {
    const auto values = normal_floats(int64_t{rows} * dim, seed);
    for (int r = 0; r < rows; ++r) {
      const int slot = first + r;
      std::byte* at = memory.data() + slot / tile.tokens * tile.bytes;
      form.encode(values.data() + int64_t{r} * dim, dim, at, slot % tile.tokens);
      form.decode(at, slot % tile.tokens, dim, decoded.data() + int64_t{r} * dim);
    }
  }

  // The rows as runs of at most `cut` rows, the first of which stands at `at` in its block.
  std::vector<TileRun> runs(int cut, int at = 0) const {
    std::vector<TileRun> made;
    for (int r = 0; r < rows;) {
      const int slot = first + r;
      const int n = std::min({cut, rows - r, kTileRows - slot % kTileRows});
      made.push_back({memory.data() + slot / tile.tokens * tile.bytes, slot % tile.tokens, n,
                      at + r, r % 2 ? memory.data() : nullptr});
      r += n;
    }
    return made;
  }

  TileSpec tile;
  int first, rows;
  std::vector<std::byte> memory;
  std::vector<float> decoded;
};

// s as `scores` leaves it where it was 42 before.
std::vector<float> scores_of(const Codec& codec, const float* q, int queries, int dim,
                             std::span<const TileRun> runs) {
  const int64_t floats = codec.prepared_floats(dim);
  std::vector<float> prepared(queries * floats), scratch((kBlock + 1) * dim);
  for (int i = 0; i < queries; ++i) {
    codec.prepare(q + int64_t{i} * dim, dim, prepared.data() + i * floats);
  }
  std::vector<float> s(int64_t{queries} * kBlock, 42.0f);
  codec.scores(prepared.data(), queries, dim, runs, s.data(), scratch.data());
  return s;
}

void accumulate(const Codec& codec, const float* p, int queries, int dim,
                std::span<const TileRun> runs, float* o) {
  std::vector<float> scratch((kBlock + 1) * dim);
  codec.accumulate(p, queries, dim, runs, o, scratch.data());
}

std::vector<float> probabilities(int64_t n, uint64_t seed) {
  auto p = normal_floats(n, seed);
  // Most are small; a few are as large as the softmax lets them be.
  for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp(i % 41 == 7 ? 8.0f : -std::fabs(p[i]));
  return p;
}

void expect_kernels_right(const Codec& codec, int dim, int first, int rows, int queries,
                          int at = 0) {
  const StoredRows keys(codec.k, dim, first, rows, dim + rows);
  const StoredRows values(codec.v, dim, first, rows, dim + rows + 1);
  const auto q = normal_floats(int64_t{queries} * dim, 2);
  const auto s = scores_of(codec, q.data(), queries, dim, keys.runs(kTileRows, at));
  const auto p = probabilities(int64_t{queries} * kBlock, 3);
  auto o = normal_floats(int64_t{queries} * dim + 1, 4);
  const auto before = o;
  accumulate(codec, p.data(), queries, dim, values.runs(kTileRows, at), o.data());

  double error = 0, norm = 0;
  const auto compare = [&](float actual, double expected) {
    error += (actual - expected) * (actual - expected);
    norm += expected * expected;
  };
  for (int i = 0; i < queries; ++i) {
    for (int r = 0; r < kBlock; ++r) {
      if (r < at || r >= at + rows) {
        ASSERT_EQ(s[i * kBlock + r], 42.0f) << codec.name << ": no row of the runs";
        continue;
      }
      double dot = 0;
      for (int d = 0; d < dim; ++d) {
        dot += double{q[int64_t{i} * dim + d]} * double{keys.decoded[int64_t{r - at} * dim + d]};
      }
      compare(s[i * kBlock + r], dot);
    }
    for (int d = 0; d < dim; ++d) {
      double sum = before[i * dim + d];
      for (int r = 0; r < rows; ++r) {
        sum += double{p[i * kBlock + at + r]} * double{values.decoded[int64_t{r} * dim + d]};
      }
      compare(o[i * dim + d], sum);
    }
  }
  ASSERT_EQ(o.back(), before.back()) << "behind the outputs";
  EXPECT_LE(std::sqrt(error / norm), codec.tolerance)
      << codec.name << " of " << dim << ", " << rows << " rows, " << queries << " queries";
}

class KernelsOnTarget : public testing::TestWithParam<int64_t> {};

TEST_P(KernelsOnTarget, KernelsAgreeWithDouble) {
  for (const Codec& codec : codecs_of(GetParam())) {
    for (int dim : {1, 5, 8, 20, 64, 80, 96, 100, 128}) expect_kernels_right(codec, dim, 0, 32, 5);
    for (int rows : {1, 2, 3, 4, 7, 31}) expect_kernels_right(codec, 72, 1, rows, 3);
    for (int at : {1, 9, 16, 25}) expect_kernels_right(codec, 72, 3, 7, 3, at);
    for (int queries : {1, 2, 3, 4, 7, 8, 64}) expect_kernels_right(codec, 40, 0, 6, queries);
    for (int queries : {1, 2, 3, 4, 6, 7, 8, 13, 64}) {
      expect_kernels_right(codec, 72, 0, 32, queries);
    }
  }
}

// A query alone, over rows cut into runs, against `queries` at once.
void expect_same_alone(const Codec& codec, int dim, int queries, std::span<const int> cuts) {
  const StoredRows keys(codec.k, dim, 0, kBlock, 1), values(codec.v, dim, 0, kBlock, 2);
  const auto q = normal_floats(queries * dim, 2);
  const auto whole = scores_of(codec, q.data(), queries, dim, keys.runs(kTileRows));
  const auto p = probabilities(queries * kBlock, 3);
  std::vector<float> o(queries * dim, 0.0f);
  accumulate(codec, p.data(), queries, dim, values.runs(kTileRows), o.data());

  for (const int cut : cuts) {
    for (int i = 0; i < queries; ++i) {
      const auto s = scores_of(codec, q.data() + i * dim, 1, dim, keys.runs(cut));
      ASSERT_EQ(0, std::memcmp(s.data(), whole.data() + i * kBlock, kBlock * sizeof(float)))
          << codec.name << " cut by " << cut << ", query " << i << " of " << queries;
      std::vector<float> one(dim, 0.0f);
      accumulate(codec, p.data() + i * kBlock, 1, dim, values.runs(cut), one.data());
      ASSERT_EQ(0, std::memcmp(one.data(), o.data() + i * dim, dim * sizeof(float)))
          << codec.name << " cut by " << cut << ", query " << i << " of " << queries;
    }
  }
}

TEST_P(KernelsOnTarget, AResultDoesNotDependOnTheCall) {
  constexpr int kCuts[] = {1, 3, 4, 15}, kWhole[] = {kTileRows};
  for (const Codec& codec : codecs_of(GetParam())) {
    for (int dim : {24, 100, 128}) expect_same_alone(codec, dim, 7, kCuts);
    // Register tiles of every size.
    for (int queries : {2, 3, 5, 8, 13, 64}) expect_same_alone(codec, 100, queries, kWhole);
  }
}

TEST_P(KernelsOnTarget, ProbabilityZeroChangesNothing) {
  for (const Codec& codec : codecs_of(GetParam())) {
    const int dim = 100;
    const StoredRows values(codec.v, dim, 0, 8, 1);
    auto o = normal_floats(dim, 2);
    const auto before = o;
    const std::vector<float> p(kBlock, 0.0f);
    accumulate(codec, p.data(), 1, dim, values.runs(kTileRows), o.data());
    EXPECT_EQ(0, std::memcmp(o.data(), before.data(), dim * sizeof(float))) << codec.name;
  }
}

// In a prefill a block holds rows that a query does not see: probability 0.
TEST_P(KernelsOnTarget, RowsOfProbabilityZeroMightAsWellNotBeThere) {
  for (const Codec& codec : codecs_of(GetParam())) {
    const int dim = 96;
    const StoredRows values(codec.v, dim, 0, kBlock, 1);
    for (int seen : {1, 5, 16, 17, 31}) {
      auto p = probabilities(kBlock, 2);
      std::fill(p.begin() + seen, p.end(), 0.0f);
      std::vector<float> all(dim, 0.5f), few(dim, 0.5f);
      accumulate(codec, p.data(), 1, dim, values.runs(kTileRows), all.data());
      const StoredRows kept(codec.v, dim, 0, seen, 1);
      accumulate(codec, p.data(), 1, dim, kept.runs(kTileRows), few.data());
      EXPECT_EQ(0, std::memcmp(all.data(), few.data(), dim * sizeof(float))) << codec.name;
    }
  }
}

TEST_P(KernelsOnTarget, StoresTheSameBytesAsTheFirst) {
  const auto first = codecs_of(simd_targets().front());
  const auto here = codecs_of(GetParam());
  ASSERT_EQ(first.size(), here.size());
  for (size_t i = 0; i < first.size(); ++i) {
    for (int dim : {5, 100, 128}) {
      const auto row = normal_floats(dim, dim);
      for (auto form : {&Codec::k, &Codec::v}) {
        const TileForm &one = first[i].*form, &other = here[i].*form;
        std::vector<std::byte> a(one.tile(dim).bytes), b(a.size());
        one.encode(row.data(), dim, a.data(), 0);
        other.encode(row.data(), dim, b.data(), 0);
        EXPECT_EQ(a, b) << first[i].name;
        std::vector<float> x(dim), y(dim);
        one.decode(a.data(), 0, dim, x.data());
        other.decode(a.data(), 0, dim, y.data());
        EXPECT_EQ(0, std::memcmp(x.data(), y.data(), dim * sizeof(float))) << first[i].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, KernelsOnTarget, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

// Four tokens to a tile, channel by channel: smaller tiles than those of the registered formats.
struct FourTokens {
  static constexpr const char* kName = "four";
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

TEST(GenericKernels, TilesOfFourTokens) {
  const Codec codec = HWY_NAMESPACE::make_codec<FourTokens>();
  // Runs stay within a tile.
  for (int first : {0, 1, 3}) {
    for (int rows = 1; rows <= 4 - first; ++rows) expect_kernels_right(codec, 20, first, rows, 3);
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
