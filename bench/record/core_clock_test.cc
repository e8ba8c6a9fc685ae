#include "bench/record/core_clock.h"

#include <gtest/gtest.h>

namespace kvmark {
namespace {

// A folded chain would give thousands, a clock of the wrong unit a thousandth; an emulator or a
// sanitizer may be slow.
TEST(CoreClock, IsThatOfAProcessor) {
  EXPECT_GT(core_ghz(), 0.01);
  EXPECT_LT(core_ghz(), 20);
}

}  // namespace
}  // namespace kvmark
