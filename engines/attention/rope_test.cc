#include "engines/attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(RopeTable, AgreesWithTheReference) {
  for (RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (int dims : {2, 16, 64}) {
      const int dim = 64, heads = 3;
      const Rope rope{.theta = 10000.0, .dims = dims, .pairing = pairing};
      const RopeTable table(rope, 131072);
      for (int position : {0, 1, 17, 4095, 131071}) {
        std::vector<float> row(heads * dim);
        for (int i = 0; i < heads * dim; ++i) row[i] = std::sin(0.7f * static_cast<float>(i)) + 2;
        std::vector<double> expected(row.begin(), row.end());
        table.apply(position, heads, dim, row.data());
        for (int head = 0; head < heads; ++head) {
          rope_reference(rope, position, dim, expected.data() + head * dim);
        }
        for (int i = 0; i < heads * dim; ++i) ASSERT_NEAR(row[i], expected[i], 2e-6);
      }
    }
  }
}

TEST(RopeTable, PositionZeroIsTheIdentity) {
  const RopeTable table({.theta = 1e6, .dims = 8, .pairing = RopePairing::halves}, 1);
  std::vector<float> row = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto before = row;
  table.apply(0, 1, 8, row.data());
  EXPECT_EQ(row, before);
}

TEST(RopeReference, RotatesByHand) {
  // theta 1: every pair turns by `position`. adjacent: (0, 1), (2, 3); halves: (0, 2), (1, 3).
  const double c = std::cos(2.0), s = std::sin(2.0);
  std::vector<double> adjacent = {1, 0, 0, 1}, halves = {1, 0, 0, 1};
  rope_reference({.theta = 1, .dims = 4, .pairing = RopePairing::adjacent}, 2, 4, adjacent.data());
  rope_reference({.theta = 1, .dims = 4, .pairing = RopePairing::halves}, 2, 4, halves.data());
  EXPECT_EQ(adjacent, (std::vector<double>{c, s, -s, c}));
  EXPECT_EQ(halves, (std::vector<double>{c, -s, s, c}));
}

TEST(RopeTable, MisuseIsRefused) {
  EXPECT_THROW(RopeTable({.dims = 3}, 4), LogicError);
  EXPECT_THROW(RopeTable({.dims = 0}, 4), LogicError);
  const RopeTable table({.dims = 4}, 4);
  std::vector<float> row(4);
  EXPECT_THROW(table.apply(4, 1, 4, row.data()), LogicError);
  EXPECT_THROW(table.apply(-1, 1, 4, row.data()), LogicError);
  EXPECT_THROW(table.apply(0, 2, 2, row.data()), LogicError);
  std::vector<double> reference(4);
  EXPECT_THROW(rope_reference({.dims = 4}, 0, 2, reference.data()), LogicError);
}

}  // namespace
}  // namespace kvmark
