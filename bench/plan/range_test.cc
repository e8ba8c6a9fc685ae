#include <gmock/gmock.h>

#include "bench/plan/plan.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_range(text);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Range, ReadsValuesProductsSumsAndMixtures) {
  EXPECT_THAT(parse_range("128"), ElementsAre(128));
  EXPECT_THAT(parse_range("0"), ElementsAre(0));
  EXPECT_THAT(parse_range("128,256"), ElementsAre(128, 256));
  EXPECT_THAT(parse_range("128-1024*2"), ElementsAre(128, 256, 512, 1024));
  EXPECT_THAT(parse_range("1024-4096+1024"), ElementsAre(1024, 2048, 3072, 4096));
  EXPECT_THAT(parse_range("1,16-64*4, 100-101+1"), ElementsAre(1, 16, 64, 100, 101));
  EXPECT_THAT(parse_range("0-2+1"), ElementsAre(0, 1, 2));
  EXPECT_THAT(parse_range("7-7*2"), ElementsAre(7));
}

TEST(Range, StopsAtTheLastValueWithinTheEnd) {
  EXPECT_THAT(parse_range("100-1000*3"), ElementsAre(100, 300, 900));
  EXPECT_THAT(parse_range("1-10+4"), ElementsAre(1, 5, 9));
}

TEST(Range, ReachesTheLargestIntWithoutOverflow) {
  EXPECT_THAT(parse_range("2147483646-2147483647+1"), ElementsAre(2147483646, 2147483647));
  EXPECT_THAT(parse_range("1073741824-2147483647*2"), ElementsAre(1073741824));
}

TEST(Range, RefusesWhatNeverAdvances) {
  EXPECT_THAT(error_of("1-8*1"), HasSubstr("the range `1-8*1` never advances"));
  EXPECT_THAT(error_of("1-8*0"), HasSubstr("never advances"));
  EXPECT_THAT(error_of("0-8*2"), HasSubstr("the start must be ≥ 1 and the factor ≥ 2"));
  EXPECT_THAT(error_of("1-8+0"), HasSubstr("its step is 0"));
}

TEST(Range, RefusesDescendingAndStepless) {
  EXPECT_THAT(error_of("512-128*2"), HasSubstr("descends from 512 to 128"));
  EXPECT_THAT(error_of("128-8192"), HasSubstr("does not say how to step; write `128-8192*2`"));
}

TEST(Range, RefusesWhatIsNoNumber) {
  EXPECT_THAT(error_of(""), HasSubstr("`` in the range `` is no whole number"));
  EXPECT_THAT(error_of("128,"), HasSubstr("no whole number"));
  EXPECT_THAT(error_of(",128"), HasSubstr("no whole number"));
  EXPECT_THAT(error_of("12a"), HasSubstr("`12a` in the range `12a` is no whole number"));
  EXPECT_THAT(error_of("-5"), HasSubstr("no whole number"));
  EXPECT_THAT(error_of("1-8*2*2"), HasSubstr("`2*2`"));
  EXPECT_THAT(error_of("1.5"), HasSubstr("no whole number"));
  EXPECT_THAT(error_of("010-16*2"), HasSubstr("leading zero"));
  EXPECT_THAT(error_of("1-4294967296*2"), HasSubstr("`4294967296` in the range `1-4294967296*2` is "
                                                    "too large; at most 2147483647"));
}

TEST(Range, RefusesTooManyValues) {
  EXPECT_EQ(parse_range("1-10000+1").size(), 10000u);
  EXPECT_THAT(error_of("1-10001+1"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(error_of("1-2147483647+1"), HasSubstr("more than 10000 values"));
}

}  // namespace
}  // namespace kvmark
