#include "engines/catalog/engine_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/codecs/codec.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_engine(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(EngineName, PresetsHaveTheirFullNames) {
  EXPECT_THAT(preset_names(),
              ElementsAre("recompute", "contiguous", "paged", "fp16", "compressed"));
  EXPECT_EQ(parse_engine("recompute").name(), "recompute");
  EXPECT_EQ(parse_engine("contiguous").name(), "contiguous/f32");
  EXPECT_EQ(parse_engine("paged").name(), "paged:16/f32");
  EXPECT_EQ(parse_engine("fp16").name(), "contiguous/f16");
  EXPECT_EQ(parse_engine("compressed").name(), "contiguous/int8:g32");
  for (const std::string& preset : preset_names()) {
    EXPECT_EQ(preset_of(parse_engine(preset)), preset);
    EXPECT_EQ(preset_of(parse_engine(parse_engine(preset).name())), preset);
  }
  EXPECT_EQ(preset_of(parse_engine("paged:32/f32")), "");
}

TEST(EngineName, IsCanonical) {
  const std::pair<const char*, const char*> cases[] = {
      {"int8:g32", "contiguous/int8:g32"},
      {"k=f16,v=int8:g32", "contiguous/k=f16,v=int8:g32"},
      {"contiguous/k=f16,v=f16", "contiguous/f16"},
      {"paged/int8:g32", "paged:16/int8:g32"},
      {"paged:8", "paged:8/f32"},
      {"paged:64/f16/stop", "paged:64/f16"},
      {"contiguous/f32/grow", "contiguous/f32/grow:2"},
      {"contiguous/f32/grow:1.5", "contiguous/f32/grow:1.5"},
      {"recompute/f32/stop", "recompute"},
      {"recompute/f16", "recompute/f16"},
      {"paged:16/k=int8:g64,v=int4:g32/grow:2", "paged:16/k=int8:g64,v=int4:g32/grow:2"},
  };
  for (const auto& [text, name] : cases) {
    EXPECT_EQ(parse_engine(text).name(), name);
    EXPECT_EQ(parse_engine(name), parse_engine(text)) << text;
  }
}

TEST(EngineName, EveryCodecStandsAlone) {
  for (const Codec& codec : codecs()) {
    const EngineSpec spec = parse_engine(codec.name);
    EXPECT_EQ(spec.k_codec, codec.name);
    EXPECT_EQ(spec.v_codec, codec.name);
    EXPECT_EQ(spec.layout, LayoutKind::contiguous);
  }
}

TEST(EngineName, ErrorsNameThePartAndTheNearestName) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "needs a name"},
      {"contigous", "did you mean `contiguous`?"},
      {"compresed", "did you mean `compressed`?"},
      {"int8:g31", "did you mean `int8:g32`?"},
      {"pagd:16/f32", "no layout `pagd` (did you mean `paged`?)"},
      {"paged:16/f23", "no codec `f23` (did you mean `f32`?)"},
      {"paged:16/", "no codec ``"},
      {"paged:0/f32", "block size `0`"},
      {"paged:-4/f32", "block size `-4`"},
      {"paged:16x/f32", "block size `16x`"},
      {"paged:/f32", "block size ``"},
      {"paged:99999999999999999999/f32", "block size `99999999999999999999`"},
      {"paged:65537", "from 1 to 65536"},
      {"contiguous:16/f32", "layout `contiguous` takes no argument"},
      {"contiguous/f32/gorw", "did you mean `grow`?"},
      {"contiguous/f32/grow:1", "growth factor `1`"},
      {"contiguous/f32/grow:nan", "growth factor `nan`"},
      {"contiguous/f32/grow:inf", "growth factor `inf`"},
      {"contiguous/f32/grow:1,5", "growth factor `1,5`"},
      {"contiguous/f32/stop:2", "policy `stop` takes no argument"},
      {"contiguous/f32/grow/2", "at most three"},
      {"contiguous/k=f16", "k=NAME,v=NAME"},
      {"contiguous/v=f16,k=f16", "k=NAME,v=NAME"},
      {"contiguous/k=f16,v=f61", "no codec `f61`"},
  };
  for (const auto& [text, wrong] : cases) {
    EXPECT_THAT(error_of(text),
                AllOf(HasSubstr(fmt::format("engine `{}`", text)), HasSubstr(wrong)));
  }
}

}  // namespace
}  // namespace kvmark
