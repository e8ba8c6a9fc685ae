#include "engines/model/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "engines/codecs/simd.h"
#include "engines/core/check.h"
#include "engines/model/noise.h"

namespace kvmark {
namespace {

KvSpec llama_spec() {
  KvSpec spec;
  spec.layers = 2;
  spec.heads = 8;
  spec.kv_heads = 2;
  spec.k_dim = 128;
  spec.v_dim = 96;
  spec.rope = Rope{500000, 128, RopePairing::halves};
  spec.max_len = 1024;
  spec.max_rows = 1024;
  return spec;
}

struct Rows {
  Rows(const KvSpec& spec, uint64_t seed, int layer, int index, int first, int rows)
      : q_(size_t(rows) * spec.heads * spec.k_dim),
        k_(size_t(rows) * spec.kv_heads * spec.k_dim),
        v_(size_t(rows) * spec.kv_heads * spec.v_dim),
        q{q_.data(), rows, spec.heads * spec.k_dim},
        k{k_.data(), rows, spec.kv_heads * spec.k_dim},
        v{v_.data(), rows, spec.kv_heads * spec.v_dim} {
    SyntheticAttention(spec, seed).fill(layer, index, first, rows, q, k, v);
  }
  std::vector<float> q_, k_, v_;
  Tensor q, k, v;
};

TEST(Synthetic, RowsDependOnTheirPositionOnly) {
  const KvSpec spec = llama_spec();
  const Rows whole(spec, 1, 1, 3, 0, 60);
  for (const auto& [first, rows] : {std::pair{0, 1}, {1, 5}, {17, 43}, {59, 1}}) {
    const Rows part(spec, 1, 1, 3, first, rows);
    EXPECT_EQ(std::memcmp(part.q.data, whole.q.row(first), part.q_.size() * 4), 0);
    EXPECT_EQ(std::memcmp(part.k.data, whole.k.row(first), part.k_.size() * 4), 0);
    EXPECT_EQ(std::memcmp(part.v.data, whole.v.row(first), part.v_.size() * 4), 0);
  }
}

TEST(Synthetic, SeedLayerAndSequenceMatter) {
  const KvSpec spec = llama_spec();
  const Rows base(spec, 1, 0, 0, 0, 4);
  for (const Rows& other :
       {Rows(spec, 2, 0, 0, 0, 4), Rows(spec, 1, 1, 0, 0, 4), Rows(spec, 1, 0, 1, 0, 4)}) {
    EXPECT_NE(base.q_, other.q_);
    EXPECT_NE(base.k_, other.k_);
    EXPECT_NE(base.v_, other.v_);
  }
}

TEST(Synthetic, QueriesMayBeLeftOut) {
  const KvSpec spec = llama_spec();
  const Rows base(spec, 1, 0, 0, 7, 2);
  std::vector<float> k(base.k_.size()), v(base.v_.size());
  SyntheticAttention(spec, 1).fill(0, 0, 7, 2, {}, {k.data(), 2, base.k.cols},
                                   {v.data(), 2, base.v.cols});
  EXPECT_EQ(k, base.k_);
  EXPECT_EQ(v, base.v_);
}

// q·k/√d over many keys has a deviation of about 2 for every head.
TEST(Synthetic, ScoresSpreadByAboutTwo) {
  const KvSpec spec = llama_spec();
  const int n = 1024, dim = spec.k_dim;
  const Rows rows(spec, 1, 0, 0, 0, n);
  for (int head = 0; head < spec.heads; ++head) {
    double mean_deviation = 0;
    for (int query = 0; query < 16; ++query) {
      const float* q = rows.q.row(query * 60) + head * dim;
      double sum = 0, square = 0;
      for (int j = 0; j < n; ++j) {
        const float* k = rows.k.row(j) + head / 4 * dim;
        const double s = std::inner_product(q, q + dim, k, 0.0) / std::sqrt(dim);
        sum += s / n;
        square += s * s / n;
      }
      mean_deviation += std::sqrt(square - sum * sum) / 16;
    }
    EXPECT_GT(mean_deviation, 1.3) << head;
    EXPECT_LT(mean_deviation, 2.8) << head;
  }
}

TEST(Synthetic, SomeKeyChannelsAreOutliersInRotaryPairs) {
  const KvSpec spec = llama_spec();
  const int n = 512, dim = spec.k_dim;
  const Rows rows(spec, 1, 1, 0, 0, n);
  for (int head = 0; head < spec.kv_heads; ++head) {
    std::vector<double> rms(dim, 0.0);
    for (int j = 0; j < n; ++j) {
      for (int d = 0; d < dim; ++d) rms[d] += std::pow(rows.k.row(j)[head * dim + d], 2) / n;
    }
    for (double& r : rms) r = std::sqrt(r);
    int outliers = 0;
    for (int d = 0; d < dim; ++d) {
      if (rms[d] < 2) {
        EXPECT_NEAR(rms[d], 1, 0.25) << d;
        continue;
      }
      ++outliers;
      EXPECT_GT(rms[d], 2.4) << d;
      EXPECT_LT(rms[d], 9.5) << d;
      EXPECT_GT(rms[(d + dim / 2) % dim], 2.4) << "the other half of the pair of " << d;
    }
    EXPECT_GE(outliers, 2);
    EXPECT_LE(outliers, 8);
  }
}

TEST(Synthetic, NeighbouringKeysAreCorrelated) {
  const KvSpec spec = llama_spec();
  const int n = 512;
  const Rows rows(spec, 1, 0, 0, 0, n);
  const auto correlation = [&](int distance) {
    double product = 0, square = 0;
    for (int j = 0; j + distance < n; ++j) {
      for (int d = 0; d < rows.k.cols; ++d) {
        product += double(rows.k.row(j)[d]) * rows.k.row(j + distance)[d];
        square += double(rows.k.row(j)[d]) * rows.k.row(j)[d];
      }
    }
    return product / square;
  };
  EXPECT_NEAR(correlation(1), 0.75, 0.05);
  EXPECT_NEAR(correlation(3), 0.25, 0.05);
  EXPECT_NEAR(correlation(10), 0, 0.05);
}

TEST(Synthetic, OddWidthsAndPlainPositions) {
  KvSpec spec = llama_spec();
  spec.rope.reset();
  spec.k_dim = 3;
  spec.v_dim = 1;
  const Rows rows(spec, 9, 0, 0, 0, 50);
  for (const auto* values : {&rows.q_, &rows.k_, &rows.v_}) {
    EXPECT_TRUE(std::all_of(values->begin(), values->end(),
                            [](float x) { return std::isfinite(x) && std::abs(x) < 100; }));
    EXPECT_NE(std::count(values->begin(), values->end(), 0.0f), std::ssize(*values));
  }
}

// Another machine or compiler must make the very same bits.
TEST(Synthetic, TheSameBitsEverywhere) {
  const Rows rows(llama_spec(), 1, 1, 0, 100, 32);
  const auto digest = [](const std::vector<float>& values) {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(float); ++i) {
      hash = (hash ^ bytes[i]) * 1099511628211ull;
    }
    return hash;
  };
  EXPECT_EQ(digest(rows.q_), 0x99bcdbc7730f01d7ull);
  EXPECT_EQ(digest(rows.k_), 0x429923f34e8f2776ull);
  EXPECT_EQ(digest(rows.v_), 0xb9396038899422c8ull);
}

TEST(Synthetic, ImpossibleCallsAreBugs) {
  const KvSpec spec = llama_spec();
  EXPECT_THROW(Rows(spec, 1, 2, 0, 0, 1), LogicError);
  EXPECT_THROW(Rows(spec, 1, 0, 0, -1, 1), LogicError);
}

TEST(Noise, BellHasTheDeclaredMoments) {
  std::vector<float> x(200000);
  fill_bell(stream_of({1, 2, 3}), 0, static_cast<int>(x.size()), 1.0, x.data());
  double mean = 0, square = 0, fourth = 0;
  for (const float v : x) {
    mean += v / double(x.size());
    square += double(v) * v / x.size();
    fourth += std::pow(v, 4) / x.size();
    ASSERT_LT(std::abs(v), 3.5f);
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.01);
  EXPECT_NEAR(fourth / (square * square), 2.7, 0.1);  // a normal has 3, one uniform number 1.8
}

// In vectors as one by one, whatever the width, where it begins and what is left over.
TEST(Noise, EveryTargetMakesTheBitsOfTheDefinition) {
  const uint64_t stream = stream_of({7}), first = 3;
  const std::vector<float> scales = {0.5f, -2.0f, 1.0f / 3, 8.0f, 0.1f};
  for (const int64_t target : simd_targets()) {
    const NoiseRows rows = noise_rows(target);
    for (const int n : {1, 3, 4, 5, 31, 64, 67, 200}) {
      std::vector<float> bells(n), steps(n), of_channels(n);
      for (int i = 0; i < n; ++i) of_channels[i] = scales[i % scales.size()];
      rows.bell(stream, first, n, 0.3f, bells.data());
      rows.walk(stream, 1000, n, of_channels.data(), steps.data());
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(bells[i], static_cast<float>(bell_of(hash_at(stream, first + i))) * 0.3f)
            << target << ": " << i << " of " << n;
        ASSERT_EQ(steps[i], static_cast<float>(walk_of(stream, 1000, n, i)) * of_channels[i])
            << target << ": " << i << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace kvmark
