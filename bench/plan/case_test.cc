#include "bench/plan/case.h"

#include <gmock/gmock.h>

#include "engines/core/check.h"

namespace kvmark {
namespace {

using testing::HasSubstr;

Case full_case() {
  Case c;
  c.engine = parse_engine("paged:8/k=f16,v=int8:g32/grow:1.5");
  c.device = "cuda";
  c.source = {ModelSource::Kind::file, "models/x.gguf", 9007199254740991u, WeightType::bf16};
  c.model = model_preset("qwen2.5-7b");
  c.model.name = "a \"name\"";
  c.level = Level::attention;
  c.prompt_len = 100;
  c.gen_len = 20;
  c.max_seq_len = 128;
  c.batch = 3;
  c.threads = 2;
  c.seed = 18446744073709551615u;
  c.tokens = TokenMode::greedy;
  c.pool_order = PoolOrder::shuffled;
  c.repeat_kv = true;
  c.score = {"configs/text/t.txt", 64, 16};
  c.gate.kld_mean_max = 1e-4;
  return c;
}

Case small_case() {
  Case c;
  c.engine = parse_engine("paged");
  c.preset = "paged";
  c.source.name = "seed-gqa";
  c.model = model_preset("seed-gqa");
  c.prompt_len = 512;
  c.gen_len = 128;
  c.max_seq_len = 1024;
  return c;
}

TEST(Case, SurvivesJsonWhole) {
  Case pinned = small_case();
  pinned.pin = true;
  for (const Case& c : {full_case(), small_case(), pinned, Case()}) {
    const auto json = to_json(c);
    const Case again = case_from_json(nlohmann::ordered_json::parse(json.dump()));
    EXPECT_EQ(to_json(again), json);
    EXPECT_EQ(again.engine, c.engine);
    EXPECT_EQ(again.model.norm_eps, c.model.norm_eps);
    EXPECT_EQ(again.seed, c.seed);
    EXPECT_EQ(again.pin, c.pin);
    EXPECT_EQ(case_id(again), case_id(c));
  }
}

TEST(Case, GptKeepsNoRope) {
  Case c = small_case();
  c.model = model_preset("gpt2");
  EXPECT_TRUE(to_json(c)["rope"].is_null());
  EXPECT_EQ(case_from_json(to_json(c)).model.family, Family::gpt2);
}

TEST(Case, HasTheKeysOfTheRecord) {
  const auto json = to_json(small_case());
  EXPECT_EQ(json["engine"], "paged:16/f32");
  EXPECT_EQ(json["preset"], "paged");
  EXPECT_EQ(json["seq_len"], 640);
  EXPECT_EQ(json["norm_eps"].dump(), "1e-05");
  EXPECT_TRUE(json["score"].is_null());
  EXPECT_TRUE(json["gate"].is_null());
  EXPECT_TRUE(to_json(full_case())["preset"].is_null());
}

TEST(Case, BadJsonNamesTheKey) {
  const auto error = [](const char* key, const nlohmann::ordered_json& value) -> std::string {
    auto json = to_json(small_case());
    json[key] = value;
    try {
      case_from_json(json);
    } catch (const RuntimeError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("gen_len", "many"), "case.gen_len: cannot be read from \"many\"");
  EXPECT_EQ(error("gen_len", 1.5), "case.gen_len: cannot be read from 1.5");
  EXPECT_EQ(error("gen_len", true), "case.gen_len: cannot be read from true");
  EXPECT_THAT(error("gen_len", int64_t{1} << 40), HasSubstr("case.gen_len"));
  EXPECT_THAT(error("level", "atention"), HasSubstr("case.level"));
  EXPECT_THAT(error("rope", 3), HasSubstr("case.rope: expected a JSON object"));
  EXPECT_THROW(case_from_json(nlohmann::ordered_json::array()), RuntimeError);
}

TEST(CaseId, StaysWhatItIs) {
  // A change of these strands every older record: `compare` would find no pairs.
  EXPECT_EQ(case_id(small_case()), "2a9a3e8215fa8d8c");
  EXPECT_EQ(case_id(full_case()), "f0b6f38de4967f8b");
}

TEST(CaseId, HangsOnWhatTheNumbersHangOn) {
  const Case c = small_case();
  std::vector<std::string> ids = {case_id(c)};
  const auto add = [&](auto change) {
    Case other = c;
    change(other);
    ids.push_back(case_id(other));
  };
  add([](Case& o) { o.engine = parse_engine("paged:32/f32"); });
  add([](Case& o) { o.batch = 2; });
  add([](Case& o) { o.threads = 2; });
  add([](Case& o) { o.pin = true; });
  add([](Case& o) { o.prompt_len = 511; });
  add([](Case& o) { o.seed = 2; });
  add([](Case& o) { o.source.seed = 2; });
  add([](Case& o) { o.source.weights = WeightType::f16; });
  add([](Case& o) { o.model.ffn = 1; });
  add([](Case& o) { o.model.rope.theta = 1; });
  add([](Case& o) { o.model.rope.pairing = RopePairing::adjacent; });
  add([](Case& o) { o.pool_order = PoolOrder::shuffled; });
  add([](Case& o) { o.repeat_kv = true; });
  add([](Case& o) { o.level = Level::attention; });
  add([](Case& o) { o.score = {"t.txt", 10, 128}; });
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids[0].size(), 16u);
}

TEST(CaseId, DoesNotHangOnNamesFoldersAndGates) {
  Case c = small_case();
  c.source = {ModelSource::Kind::file, "models/x.gguf", 1, WeightType::f16};
  c.score = {"configs/text/t.txt", 10, 128};
  Case other = c;
  other.preset = "";
  other.source.name = "/home/someone/models/x.gguf";
  other.score.text = "/elsewhere/t.txt";
  other.gate.top1_min = 0.5;
  EXPECT_EQ(case_id(other), case_id(c));
}

TEST(GroupId, LeavesOnlyTheEngineOut) {
  Case a = small_case(), b = small_case();
  b.engine = parse_engine("fp16");
  b.preset = "fp16";
  EXPECT_EQ(group_id(a), group_id(b));
  EXPECT_NE(case_id(a), case_id(b));
  b.device = "cuda";
  EXPECT_NE(group_id(a), group_id(b));
}

}  // namespace
}  // namespace kvmark
