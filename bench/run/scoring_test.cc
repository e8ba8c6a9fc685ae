#include "bench/run/scoring.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvmark {
namespace {

TEST(ScorePosition, MatchesAHandCalculation) {
  // r = (1/2, 1/4, 1/4), p = (1/4, 1/2, 1/4).
  const float reference[] = {std::log(2.0f), 0, 0}, logits[] = {0, std::log(2.0f), 0};
  const PositionScore score = score_position(logits, reference, 3, 1);
  EXPECT_NEAR(score.kld, 0.5 * std::log(2.0) - 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(score.nll, std::log(2.0), 1e-7);
  EXPECT_NEAR(score.nll_reference, std::log(4.0), 1e-7);
  EXPECT_FALSE(score.same_top1);
}

TEST(ScorePosition, EqualLogitsHaveNoDivergenceHoweverLarge) {
  const float logits[] = {1000, -1000, 999, 3};
  const PositionScore score = score_position(logits, logits, 4, 2);
  EXPECT_EQ(score.kld, 0);
  EXPECT_TRUE(score.same_top1);
  EXPECT_TRUE(std::isfinite(score.nll));
}

TEST(ScorePosition, AddingAConstantChangesNothing) {
  const float a[] = {0.5f, -2, 3, 1}, b[] = {7.5f, 5, 10, 8};
  EXPECT_NEAR(score_position(a, b, 4, 0).kld, 0, 1e-9);
  EXPECT_NEAR(score_position(b, a, 4, 0).nll, score_position(a, a, 4, 0).nll, 1e-9);
}

}  // namespace
}  // namespace kvmark
