#include "engines/attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engines/attention/attention.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(RopeTable, HoldsTheAnglesOfEachPosition) {
  const Rope rope{.theta = 10000.0, .dims = 8, .pairing = RopePairing::halves};
  const RopeTable table(rope, 131072);
  for (int position : {0, 1, 17, 131071}) {
    const Rotation rotation = table.at(position);
    EXPECT_EQ(rotation.pairs, 4);
    EXPECT_EQ(rotation.pairing, RopePairing::halves);
    for (int i = 0; i < 4; ++i) {
      const double angle = position * std::pow(10.0, -i);
      EXPECT_NEAR(rotation.cosines[i], std::cos(angle), 1e-7) << position;
      EXPECT_NEAR(rotation.sines[i], std::sin(angle), 1e-7) << position;
    }
  }
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
  EXPECT_THROW(table.at(4), LogicError);
  EXPECT_THROW(table.at(-1), LogicError);
  std::vector<double> reference(4);
  EXPECT_THROW(rope_reference({.dims = 4}, 0, 2, reference.data()), LogicError);
}

}  // namespace
}  // namespace kvmark
