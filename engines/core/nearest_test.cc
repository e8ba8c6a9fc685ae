#include "engines/core/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvmark {
namespace {

const std::vector<std::string> kNames = {"contiguous", "paged", "recompute", "f16", "f32"};

TEST(NearestName, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("contigous", kNames), "contiguous");
  EXPECT_EQ(nearest_name("page", kNames), "paged");
  EXPECT_EQ(nearest_name("recompuet", kNames), "recompute");
}

TEST(NearestName, ATextWithoutItsArgumentsIsTheFirstThatHasThem) {
  EXPECT_EQ(nearest_name("int8", std::vector<std::string>{"int4:g32", "int8:g32", "int8:g64"}),
            "int8:g32");
}

TEST(NearestName, PrefersTheFirstOfEquals) { EXPECT_EQ(nearest_name("f", kNames), "f16"); }

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("hologram", kNames), "");
  EXPECT_EQ(nearest_name("paged", {}), "");
  EXPECT_EQ(did_you_mean("hologram", kNames), "");
}

TEST(DidYouMean, IsAnInsertForAnError) {
  EXPECT_EQ(did_you_mean("pagd", kNames), " (did you mean `paged`?)");
}

}  // namespace
}  // namespace kvmark
