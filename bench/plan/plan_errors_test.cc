#include <fmt/format.h>
#include <gmock/gmock.h>

#include "bench/plan/plan.h"
#include "bench/plan/test_files.h"

// What a plan must not say, and how it is told.
namespace kvmark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PlanErrors, UnknownKeysNameTheNearest) {
  EXPECT_EQ(plan_error("workload:\n  gen_length: 5\n").substr(0, 83),
            "plan.yaml:2:3: unknown key `gen_length` in `workload` (did you mean `gen_len`?); ex");
  EXPECT_THAT(plan_error("engine: [paged]\n"),
              StartsWith("plan.yaml:1:1: unknown key `engine` (did you mean `engines`?)"));
  EXPECT_THAT(plan_error("batch: 4\n"), HasSubstr("(did you mean `workload.batch`?)"));
  EXPECT_THAT(plan_error("zzzzzzzz: 4\n"),
              HasSubstr("unknown key `zzzzzzzz`; expected one of: name"));
  EXPECT_THAT(plan_error("x: {<<: 1}\n"), HasSubstr("unknown key `x`"));
}

TEST(PlanErrors, WrongTypes) {
  EXPECT_EQ(
      plan_error("workload: {gen_len: many}\n"),
      "plan.yaml:1:21: workload.gen_len: expected a whole number from 1 to 16777216, or a range "
      "such as `128-8192*2`, got `many`");
  EXPECT_THAT(plan_error("workload: {gen_len: 1.5}\n"), HasSubstr("got `1.5`"));
  EXPECT_THAT(plan_error("workload: {gen_len: 1e3}\n"), HasSubstr("got `1e3`"));
  EXPECT_THAT(plan_error("workload: {gen_len: 0x10}\n"), HasSubstr("got `0x10`"));
  EXPECT_THAT(plan_error("workload: {gen_len: {a: 1}}\n"), HasSubstr("got a map"));
  EXPECT_THAT(plan_error("workload: {gen_len: [[1]]}\n"), HasSubstr("got a list"));
  EXPECT_THAT(plan_error("workload:\n  gen_len:\n"), HasSubstr("got nothing"));
  EXPECT_THAT(plan_error("workload: 5\n"),
              HasSubstr("`workload` is a section; expected keys under"));
  EXPECT_THAT(plan_error("sampling: {rounds: [1, 2]}\n"), HasSubstr("got a list"));
  EXPECT_THAT(plan_error("sampling: {rounds: \"3\"}\n"), HasSubstr("got the text \"3\""));
  EXPECT_THAT(plan_error("workload: {repeat_kv: yes}\n"), HasSubstr("expected `true` or `false`"));
  EXPECT_THAT(plan_error("workload: {repeat_kv: \"true\"}\n"), HasSubstr("got the text \"true\""));
  EXPECT_THAT(plan_error("sampling: {target_width: nan}\n"), HasSubstr("got `nan`"));
  EXPECT_THAT(plan_error("sampling: {target_width: \"0.5\"}\n"), HasSubstr("got the text \"0.5\""));
  EXPECT_THAT(plan_error("name: \"\"\n"), HasSubstr("plan.yaml:1:7: name: is empty"));
}

TEST(PlanErrors, LeadingZerosAreNeitherEightNorTen) {
  EXPECT_EQ(
      plan_error("workload: {gen_len: 010}\n"),
      "plan.yaml:1:21: workload.gen_len: `010` has a leading zero; write it without (it is not "
      "read as octal)");
  EXPECT_THAT(plan_error("sampling: {budget_s: 010}\n"), HasSubstr("leading zero"));
  EXPECT_THAT(plan_error("workload: {gen_len: [8, 010]}\n"), HasSubstr("plan.yaml:1:25: "));
  EXPECT_THAT(plan_error("model: {heads: 08:2}\n"), HasSubstr("leading zero"));
}

TEST(PlanErrors, ANameIsOneFoldersName) {
  for (const char* bad : {"a/b", "\\0", "a\\x1b", ".hidden", ".."}) {
    EXPECT_THAT(plan_error(fmt::format("name: \"{}\"\n", bad)),
                AllOf(StartsWith("plan.yaml:1:7: name: `"), HasSubstr("expected letters, digits")))
        << bad;
  }
  EXPECT_THAT(plan_error("name: " + std::string(101, 'x') + "\n"), HasSubstr("100 bytes at most"));
  EXPECT_EQ(plan_error("name: " + std::string(100, 'x') + "\n"), "no error");
  EXPECT_EQ(plan_error("name: größe-1.2 (b)\n"), "no error");
  EXPECT_THAT(plan_error("name: a\n", {{"--set", "name", "\xff"}}), StartsWith("--set name: `"));
}

TEST(PlanErrors, ASeedIsExactInEveryJsonReader) {
  EXPECT_EQ(first(plan_of("workload: {seed: 9007199254740992}\n")).seed, 9007199254740992u);
  for (const char* bad : {"9007199254740993", "99999999999999999999", "-1"}) {
    EXPECT_THAT(plan_error(fmt::format("workload: {{seed: {}}}\n", bad)),
                HasSubstr(fmt::format("{} is out of range; expected a whole number from 0 to "
                                      "9007199254740992",
                                      bad)));
  }
}

TEST(PlanErrors, NumbersThatOverflow) {
  EXPECT_THAT(plan_error("sampling: {budget_s: 1e400}\n"),
              HasSubstr("plan.yaml:1:22: sampling.budget_s: expected a number"));
  EXPECT_THAT(plan_error("{\"sampling\": {\"budget_s\": 1e400}}", {}, "plan.json"),
              StartsWith("plan.json:1:27: 1e400 is larger"));
}

TEST(PlanErrors, Bounds) {
  EXPECT_THAT(plan_error("workload: {gen_len: 0}\n"),
              HasSubstr("workload.gen_len: 0 is out of range; expected a whole number from 1 to"));
  EXPECT_THAT(plan_error("workload: {batch: -1}\n"), HasSubstr("-1 is out of range"));
  EXPECT_THAT(plan_error("workload: {prompt_len: 99999999999999999999}\n"),
              HasSubstr("99999999999999999999 is out of range; expected a whole number from 0 to"));
  EXPECT_THAT(plan_error("sampling: {target_width: 1.5}\n"),
              HasSubstr("1.5 is out of range; expected a number from 0 to 1"));
  EXPECT_THAT(plan_error("workload: {gen_len: 0-4+1}\n"), HasSubstr("out of range"));
}

TEST(PlanErrors, EmptyAndRepeatedAxes) {
  EXPECT_EQ(plan_error("engines: []\n"),
            "plan.yaml:1:10: engines: the list is empty; give at least one value");
  EXPECT_THAT(plan_error("workload: {batch: []}\n"), HasSubstr("the list is empty"));
  EXPECT_THAT(plan_error("workload: {batch: [1, 2, 1]}\n"),
              HasSubstr("plan.yaml:1:26: workload.batch: 1 stands here a second time"));
  EXPECT_THAT(plan_error("engines: [fp16, contiguous/f16]\n"),
              HasSubstr("engines: contiguous/f16 stands here a second time"));
}

TEST(PlanErrors, RangesInAxes) {
  EXPECT_THAT(plan_error("workload: {prompt_len: 512-128*2}\n"),
              StartsWith("plan.yaml:1:24: workload.prompt_len: the range `512-128*2` descends"));
  EXPECT_THAT(plan_error("workload: {prompt_len: \"1-9\"}\n"),
              HasSubstr("does not say how to step"));
  EXPECT_THAT(plan_error("workload: {prompt_len: 0-9999+1, gen_len: 1-2+1}\nengines: [paged]\n"),
              HasSubstr("the axes make more than 10000 cases"));
}

TEST(PlanErrors, Choices) {
  EXPECT_THAT(plan_error("workload: {level: atention}\n"),
              HasSubstr("workload.level: `atention` is not known (did you mean `attention`?); "
                        "expected one of: model, attention"));
  EXPECT_THAT(plan_error("devices: [cuda0]\n"), HasSubstr("(did you mean `cuda`?)"));
  EXPECT_THAT(plan_error("model: {preset: seed-gpa}\n"), HasSubstr("(did you mean `seed-gqa`?)"));
}

TEST(PlanErrors, EnginesThatAreNone) {
  EXPECT_THAT(
      plan_error("engines:\n  - contiguous\n  - pagde:16/f32\n"),
      AllOf(StartsWith("plan.yaml:3:5: engines: "), HasSubstr("pagde"), HasSubstr("`paged")));
  EXPECT_THAT(plan_error("engines: [contiguous/k=f16,v=int8:g32]\n"), HasSubstr("plan.yaml:1:"));
}

TEST(PlanErrors, WhatTheCatalogRefuses) {
  const std::string error = plan_error("engines: [contiguous, \"paged:16/f32/grow:2\"]\n");
  EXPECT_THAT(error,
              StartsWith("plan.yaml:1:23: engines: engine `paged:16/f32/grow:2`: policy grow is "
                         "for contiguous only"));
  EXPECT_THAT(error, HasSubstr("(for seed-gqa, 2 KV heads of 64)"));
}

TEST(PlanErrors, SizesThatNoMachineHolds) {
  EXPECT_THAT(plan_error("model: {layers: 1024, heads: \"1024:1024\", head_dim: 1024}\n"
                         "workload: {level: attention, prompt_len: 16000000, batch: 4096}\n"),
              AllOf(StartsWith("plan.yaml:2:42: workload.prompt_len: 4096 × "),
                    HasSubstr("no machine holds that")));
}

TEST(PlanErrors, AutomaticLayersNeedAWorkingSetAndAttentionLevel) {
  EXPECT_EQ(plan_error("model: {layers: auto}\nworkload: {level: attention}\n"),
            "plan.yaml:1:17: model.layers: `auto` picks the number that gives "
            "workload.working_set_gib; set that too, or give a number");
  EXPECT_EQ(plan_error("workload: {level: attention, working_set_gib: 1}\n"),
            "plan.yaml:1:47: workload.working_set_gib: it picks the number of layers where that is "
            "`auto`; set model.layers: auto, or leave this out");
  EXPECT_THAT(plan_error("model: {layers: 2}\nworkload: {level: attention, working_set_gib: 1}\n"),
              StartsWith("plan.yaml:2:47: workload.working_set_gib: "));
  EXPECT_THAT(plan_error("model: {layers: auto}\nworkload: {working_set_gib: 1}\n"),
              StartsWith("plan.yaml:1:17: model.layers: `auto` is for workload.level: attention"));
  EXPECT_EQ(plan_error("model: {layers: auto}\n"
                       "workload: {level: attention, prompt_len: 8, working_set_gib: 1}\n"),
            "plan.yaml:2:62: workload.working_set_gib: 1 GiB would be 262144 layers of 4096 bytes, "
            "at most 16384 are sensible; take a longer prompt_len, a larger batch or a smaller "
            "working set");
  EXPECT_THAT(plan_error("model: {layers: many}\n"),
              AllOf(StartsWith("plan.yaml:1:17: model.layers: expected a whole number from 1 to"),
                    HasSubstr(", or `auto`, got `many`")));
  EXPECT_THAT(plan_error("workload: {working_set_gib: 0}\n"), HasSubstr("0 is out of range"));
}

TEST(PlanErrors, LengthsThatDoNotFit) {
  EXPECT_EQ(
      plan_error("workload: {prompt_len: 100, gen_len: 100, max_seq_len: 128}\n"),
      "plan.yaml:1:56: workload.max_seq_len: 128 is too small: prompt_len 100 and gen_len 100 "
      "need 199");
  EXPECT_THAT(
      plan_error("model: {preset: gpt2}\nworkload: {prompt_len: 1000, gen_len: 100}\n"),
      HasSubstr("workload.gen_len: prompt_len 1000 and gen_len 100 need 1099 positions, the "
                "context of gpt2 is 1024; shorten the run or set model.context"));
  EXPECT_EQ(
      first(plan_of("workload: {prompt_len: 100, gen_len: 29, max_seq_len: 128}\n")).max_seq_len,
      128);
}

TEST(PlanErrors, WhatCannotBeCounted) {
  EXPECT_THAT(plan_error("count: callgrind\nthreads: [1, 2]\n"),
              AllOf(StartsWith("plan.yaml:2:14: threads: "), HasSubstr("1 thread")));
  EXPECT_THAT(plan_error("count: callgrind\nworkload: {gen_len: 1}\n"),
              AllOf(StartsWith("plan.yaml:2:21: workload.gen_len: "), HasSubstr("at least 2")));
  EXPECT_THAT(plan_error("count: perf\n"), HasSubstr("one of: callgrind"));
}

TEST(PlanErrors, Sources) {
  EXPECT_THAT(plan_error("model: {preset: gpt2, dir: x}\n"),
              HasSubstr("model.dir: model.preset is given already"));
  EXPECT_THAT(plan_error("model: {file: none.gguf}\n"),
              AllOf(StartsWith("plan.yaml:1:15: model.file: there is no `none.gguf`"),
                    HasSubstr("`make model`")));
  EXPECT_THAT(plan_error("model: {file: plan.yaml}\n"), StartsWith("plan.yaml:1:15: model.file: "));
  EXPECT_THAT(plan_error("score: {text: plan.yaml}\n"),
              HasSubstr("score.text: scoring needs trained weights"));
  EXPECT_THAT(plan_error("score: {positions: 10}\n"), HasSubstr("there is no score.text"));
}

}  // namespace
}  // namespace kvmark
