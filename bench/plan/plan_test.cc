#include "bench/plan/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <clocale>

#include "bench/plan/test_files.h"
#include "engines/model/gguf_testing.h"

namespace kvmark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<int> prompts(const Plan& plan) {
  std::vector<int> all;
  for (const Group& group : plan.groups) all.push_back(group.cases[0].prompt_len);
  return all;
}

// --- what a plan gives
// ----------------------------------------------------------------------------

TEST(Plan, DefaultsMakeAWholeCase) {
  const Plan plan = plan_of("name: tiny\n");
  EXPECT_EQ(plan.name, "tiny");
  ASSERT_EQ(plan.groups.size(), 1u);
  ASSERT_EQ(plan.groups[0].cases.size(), 5u);
  std::vector<std::string> presets;
  for (const Case& c : plan.groups[0].cases) presets.push_back(c.preset);
  EXPECT_THAT(presets, ElementsAre("recompute", "contiguous", "paged", "fp16", "compressed"));
  const Case c = first(plan);
  EXPECT_EQ(c.model.name, "seed-gqa");
  EXPECT_EQ(c.device, "cpu");
  EXPECT_EQ(c.prompt_len, 0);
  EXPECT_EQ(c.gen_len, 64);
  EXPECT_EQ(c.max_seq_len, c.model.context);
  EXPECT_GE(c.threads, 1);
  EXPECT_EQ(plan.sampling.rounds, 3);
  EXPECT_EQ(plan.sampling.target_width, 0.02);
}

TEST(Plan, NameDefaultsToTheFile) { EXPECT_EQ(plan_of("threads: 1\n").name, "plan"); }

TEST(Plan, AxesMultiplyAndTheLastIsFastest) {
  const Plan plan = plan_of(
      "engines: [contiguous, fp16]\n"
      "workload: {prompt_len: [16, \"32-128*2\"], batch: [1, 2]}\n"
      "threads: [1, 2]\n");
  ASSERT_EQ(plan.groups.size(), 4u * 2 * 2);
  EXPECT_EQ(plan.groups[0].cases.size(), 2u);
  EXPECT_EQ(plan.groups[0].cases[0].threads, 1);
  EXPECT_EQ(plan.groups[1].cases[0].threads, 2);
  EXPECT_EQ(plan.groups[1].cases[0].batch, 1);
  EXPECT_EQ(plan.groups[2].cases[0].batch, 2);
  EXPECT_EQ(plan.groups[4].cases[0].prompt_len, 32);
  EXPECT_EQ(plan.groups[15].cases[0].prompt_len, 128);
}

TEST(Plan, UnquotedRangesAreRanges) {
  EXPECT_THAT(prompts(plan_of("workload: {prompt_len: 128-512*2}\n")), ElementsAre(128, 256, 512));
  EXPECT_THAT(prompts(plan_of("workload:\n  prompt_len: 1,2\n")), ElementsAre(1, 2));
}

TEST(Plan, TheSameInJson) {
  const TempFolder folder;
  const Plan plan = load_plan(
      folder.write("p.json",
                   R"({"$schema": "schema.json", "engines": ["fp16", "paged:48/k=f16,v=int8:g32"],
                       "model": {"heads": "8:4"}, "workload": {"prompt_len": "16-64*2"}})"),
      {});
  EXPECT_THAT(prompts(plan), ElementsAre(16, 32, 64));
  EXPECT_EQ(plan.groups[0].cases[1].engine.name(), "paged:48/k=f16,v=int8:g32");
  EXPECT_EQ(first(plan).model.kv_heads, 4);
}

TEST(Plan, CudaIsADeviceOfTheCase) {
  const Plan plan = plan_of("devices: [cpu, cuda]\n");
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[1].cases[0].device, "cuda");
}

TEST(Plan, SeqLenGivesTheMissingLength) {
  EXPECT_THAT(prompts(plan_of("workload: {seq_len: [128, 256], gen_len: 28}\n")),
              ElementsAre(100, 228));
  EXPECT_EQ(first(plan_of("workload: {seq_len: 128, prompt_len: 28}\n")).gen_len, 100);
  EXPECT_EQ(first(plan_of("workload: {seq_len: 128}\n")).prompt_len, 64);  // gen_len's default
  EXPECT_THAT(plan_error("workload: {seq_len: 128, prompt_len: 28, gen_len: 100}\n"),
              HasSubstr("plan.yaml:1:21: workload.seq_len: prompt_len and gen_len are given too"));
  EXPECT_THAT(plan_error("workload: {seq_len: 16, gen_len: 28}\n"),
              HasSubstr("workload.seq_len: 16 is shorter than gen_len 28"));
  EXPECT_THAT(plan_error("workload: {seq_len: 16, prompt_len: 16}\n"),
              HasSubstr("16 leaves no token to generate after prompt_len 16"));
}

TEST(Plan, ShapesFollowTheFields) {
  const ModelConfig heads = first(plan_of("model: {heads: 32:8}\n")).model;
  EXPECT_EQ(heads.heads, 32);
  EXPECT_EQ(heads.kv_heads, 8);
  EXPECT_EQ(heads.head_dim, 64);  // stays

  const ModelConfig wide = first(plan_of("model: {d_model: 1024}\n")).model;
  EXPECT_EQ(wide.head_dim, 128);
  EXPECT_EQ(wide.rope.dims, 128);
  EXPECT_EQ(wide.ffn, 2816);

  const ModelConfig gpt2 = first(plan_of("model: {preset: gpt2, heads: 6}\n")).model;
  EXPECT_EQ(gpt2.kv_heads, 6);

  const ModelConfig many =
      first(plan_of("model: {layers: 2, kv_heads: 4, head_dim: 96, ffn: 64, "
                    "vocab: 100, context: 256, rope_theta: 500000, "
                    "qkv_bias: true, tied_embeddings: true}\nengines: [fp16]\n"))
          .model;
  EXPECT_EQ(many.layers, 2);
  EXPECT_EQ(many.kv_heads, 4);
  EXPECT_EQ(many.head_dim, 96);
  EXPECT_EQ(many.rope.theta, 500000);
  EXPECT_TRUE(many.qkv_bias);
  EXPECT_TRUE(many.tied_embeddings);
}

TEST(Plan, ImpossibleShapesNameTheField) {
  EXPECT_THAT(
      plan_error("model: {heads: \"8:3\"}\n"),
      HasSubstr("plan.yaml:1:16: model.heads: model seed-gqa: heads is 8 and kv_heads is 3"));
  EXPECT_THAT(plan_error("model:\n  heads: 8:2\n  kv_heads: 4\n"),
              StartsWith("plan.yaml:3:13: model.kv_heads: model.heads gives the KV heads already"));
  EXPECT_THAT(plan_error("model: {d_model: 500}\n"),
              HasSubstr("500 channels cannot be shared out over 8 heads"));
  EXPECT_THAT(plan_error("model: {preset: gpt2, rope_theta: 10000}\n"),
              HasSubstr("model.rope_theta: only the llama family has it"));
  EXPECT_THAT(plan_error("model: {layers: 2}\n", {{"--heads", "heads", "8:3"}}),
              StartsWith("--heads: model seed-gqa: heads is 8 and kv_heads is 3"));
  EXPECT_THAT(plan_error("model: {heads: eight}\n"), HasSubstr("expected `query:kv` heads"));
  EXPECT_THAT(plan_error("model: {heads: \"8:\"}\n"), HasSubstr("got the text \"8:\""));
}

TEST(Plan, AttentionLevelTakesWhatItNeeds) {
  const Case c =
      first(plan_of("model: {preset: llama-3-8b, layers: 1}\n"
                    "workload: {level: attention, prompt_len: 16384, gen_len: 17}\n"));
  EXPECT_EQ(c.max_seq_len, 16448);  // 16,400 rounded up to 64; the model's context is no limit
  EXPECT_THAT(plan_error("workload: {level: attention, gen_len: 1}\n"),
              HasSubstr("workload.gen_len: at attention level a run needs at least 2"));
  EXPECT_THAT(plan_error("workload: {level: attention, tokens: greedy}\n"),
              HasSubstr("at attention level there are no tokens"));
}

TEST(Plan, AutomaticLayersGiveTheWorkingSetInF16) {
  const std::string head = "model: {layers: auto, heads: 8:2, head_dim: 64}\n";
  const auto layers = [&](const std::string& workload) {
    const Plan plan = plan_of(
        head + "engines: [contiguous/f32, contiguous/int4:g32]\nworkload: {level: attention, " +
        workload + "}\n");
    // A group has one workload, whatever its formats.
    EXPECT_EQ(plan.groups.at(0).cases.at(0).model.layers,
              plan.groups.at(0).cases.at(1).model.layers);
    return first(plan).model.layers;
  };
  // K and V of 2 heads of 64 in f16: 512 bytes a position, so 4,096 positions are 2 MiB a layer.
  EXPECT_EQ(layers("prompt_len: 4096, working_set_gib: 1"), 512);
  EXPECT_EQ(layers("prompt_len: 4096, working_set_gib: 1, batch: 4"), 128);
  EXPECT_EQ(layers("prompt_len: 4096, working_set_gib: 1, repeat_kv: true"), 128);
  EXPECT_EQ(layers("prompt_len: 4095, working_set_gib: 1"), 513) << "at least the working set";
  EXPECT_EQ(layers("prompt_len: 4096, working_set_gib: 0.001"), 1) << "never none";
}

TEST(Plan, TheWorkingSetIsReadInEveryStep) {
  const Plan plan = plan_of(
      "model: {layers: auto, heads: [16:16, 28:4], head_dim: [64, 128]}\n"
      "engines: [contiguous/f16]\n"
      "workload: {level: attention, prompt_len: [1000, 65536], working_set_gib: [0.5, 2]}\n");
  ASSERT_EQ(plan.groups.size(), 16u);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Case& c = plan.groups[i].cases[0];
    const double wanted = (i % 2 == 0 ? 0.5 : 2) * (1 << 30);
    EXPECT_GE(predict(c, 0).kv_bytes_read_per_step, wanted);
    const double spare = 1.0 / c.model.layers + 64.0 / c.prompt_len;  // a layer, and the new tokens
    EXPECT_LE(predict(c, 0).kv_bytes_read_per_step, wanted * (1 + spare));
  }
}

TEST(Plan, PinningIsOfTheCase) {
  EXPECT_FALSE(first(plan_of("threads: 2\n")).pin);
  const Plan plan = plan_of("threads: 2\npin: [false, true]\n");
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_TRUE(plan.groups[1].cases[0].pin);
}

TEST(Plan, ACountTakesOneThreadAndOneRound) {
  const Plan plan = plan_of("count: callgrind\nsampling: {rounds: 5}\n");
  const Case& counted = plan.groups[0].cases[0];
  EXPECT_TRUE(counted.counted());
  EXPECT_EQ(counted.threads, 1);
  EXPECT_EQ(plan.sampling.rounds, 1);
  EXPECT_EQ(plan.as_run["count"], "callgrind");
  const Case timed = plan_of("threads: 1\n").groups[0].cases[0];
  EXPECT_NE(case_id(counted), case_id(timed)) << "a count is compared with counts alone";
  EXPECT_EQ(case_id(case_from_json(to_json(counted))), case_id(counted));
}

TEST(Plan, WeightsAreF16ForFilesOnly) {
  EXPECT_EQ(first(plan_of("name: x\n")).source.weights, WeightType::f32);
  EXPECT_EQ(first(plan_of("model: {weights: {dtype: bf16, seed: 7}}\n")).source.weights,
            WeightType::bf16);
  EXPECT_EQ(first(plan_of("model: {weights: {dtype: bf16, seed: 7}}\n")).source.seed, 7u);
}

TEST(Plan, FoldersAreReadFromBesideThePlan) {
  const TempFolder folder;
  folder.write("model/config.json",
               R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
                   "vocab_size": 256, "max_position_embeddings": 128, "rms_norm_eps": 1e-5})");
  const Plan plan = load_plan(
      folder.write("plans/p.yaml", "model: {dir: ../model}\nengines: [contiguous]\n"), {});
  const Case c = first(plan);
  EXPECT_EQ(c.source.name, folder.path("model"));
  EXPECT_EQ(c.source.kind, ModelSource::Kind::dir);
  EXPECT_EQ(c.model.kv_heads, 2);
  EXPECT_EQ(c.max_seq_len, 128);
}

TEST(Plan, GatesGoToTheEnginesOfTheirCodec) {
  const Plan plan = plan_of(
      "engines: [contiguous, fp16, paged:16/f16, compressed, \"k=f16,v=int8:g32\"]\n"
      "loss_gates:\n"
      "  f16: {attend_rel_rms_max: 1.0e-3}\n"
      "  int8:g32: {attend_rel_rms_max: 0.05}\n"
      "  \"k=f16,v=int8:g32\": {attend_rel_rms_max: 0.04}\n");
  const auto& cases = plan.groups[0].cases;
  EXPECT_EQ(cases[0].gate.attend_rel_rms_max, std::nullopt);
  EXPECT_EQ(cases[1].gate.attend_rel_rms_max, 1e-3);
  EXPECT_EQ(cases[2].gate.attend_rel_rms_max, 1e-3);
  EXPECT_EQ(cases[3].gate.attend_rel_rms_max, 0.05);
  EXPECT_EQ(cases[4].gate.attend_rel_rms_max, 0.04);
  EXPECT_EQ(cases[4].gate.kld_mean_max, std::nullopt);
}

// A model file with a shape and a vocabulary of three letters, so that a letter is a token.
std::string tiny_gguf() {
  GgufWriter file;
  file.text("general.architecture", "llama").integer("llama.block_count", 1);
  file.integer("llama.embedding_length", 32).integer("llama.attention.head_count", 1);
  file.integer("llama.feed_forward_length", 32).integer("llama.context_length", 128);
  file.number("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  file.strings("tokenizer.ggml.tokens", {"a", "b", "c"}).strings("tokenizer.ggml.merges", {});
  return file.tensor_f32("token_embd.weight", {32, 3}, std::vector<float>(32 * 3)).bytes();
}

// A plan that scores `text` in a folder with that model.
class ScoringPlan : public testing::Test {
 protected:
  Plan load(const std::string& text, const std::string& more) {
    folder_.write("model.gguf", tiny_gguf());
    folder_.write("text.txt", text);
    return load_plan(folder_.write("plan.yaml",
                                   "model: {file: model.gguf}\nengines: [fp16]\n"
                                   "score: {text: text.txt, positions: 10}\n" +
                                       more),
                     {});
  }

  TempFolder folder_;
};

TEST_F(ScoringPlan, AFolderIsNoText) {
  std::filesystem::create_directories(folder_.path("texts"));
  folder_.write("model.gguf", tiny_gguf());
  try {
    load_plan(
        folder_.write(
            "plan.yaml",
            "model: {file: model.gguf}\nengines: [fp16]\nscore: {text: texts, positions: 10}\n"),
        {});
    FAIL() << "nothing thrown";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("plan.yaml:3:15: score.text: "));
    EXPECT_THAT(e.what(), HasSubstr("texts is no file"));
  }
}

TEST_F(ScoringPlan, ATextThatIsTooShortIsAnErrorAtItsPlace) {
  EXPECT_EQ(first(load("abcabcabcab", "")).score.positions, 10);
  try {
    load("abcabcabca", "");
    FAIL() << "nothing thrown";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("plan.yaml:3:15: score.text: "));
    EXPECT_THAT(e.what(), HasSubstr("has 10 tokens"));
    EXPECT_THAT(e.what(), HasSubstr("positions 10 need 11"));
  }
}

TEST_F(ScoringPlan, GatesHoldWhereTheirLossIsKnown) {
  const Plan plan = load("abcabcabcab",
                         "workload: {level: [model, attention], prompt_len: 8, gen_len: 4}\n"
                         "loss_gates: {f16: {kld_mean_max: 0.1, top1_min: 0.9, "
                         "attend_rel_rms_max: 0.01}}\n");
  ASSERT_EQ(plan.groups.size(), 2u);
  const LossGate model = plan.groups[0].cases[0].gate;
  EXPECT_EQ(model.kld_mean_max, 0.1);
  EXPECT_EQ(model.top1_min, 0.9);
  EXPECT_EQ(model.attend_rel_rms_max, 0.01);
  const LossGate attention = plan.groups[1].cases[0].gate;
  EXPECT_EQ(attention.kld_mean_max, std::nullopt) << "nothing is scored there";
  EXPECT_EQ(attention.top1_min, std::nullopt);
  EXPECT_EQ(attention.attend_rel_rms_max, 0.01);
}

TEST(Plan, GatesThatCouldNeverDecideAreErrors) {
  EXPECT_THAT(plan_error("engines: [fp16]\nworkload: {tokens: greedy}\n"
                         "loss_gates: {f16: {attend_rel_rms_max: 0.1}}\n"),
              StartsWith("plan.yaml:3:40: loss_gates.f16.attend_rel_rms_max: under "
                         "workload.tokens: greedy"));
  EXPECT_THAT(plan_error("loss_gates: {f16: {kld_mean_max: 0.1}}\n"),
              StartsWith("plan.yaml:1:34: loss_gates.f16.kld_mean_max: this loss is known only"));
  EXPECT_THAT(plan_error("loss_gates: {f166: {attend_rel_rms_max: 0.1}}\n"), HasSubstr("`f16`"));
  EXPECT_THAT(
      plan_error("loss_gates: {f16: {kld_men_max: 0.1}}\n"),
      HasSubstr("unknown key `kld_men_max` in `loss_gates.f16` (did you mean `kld_mean_max`?)"));
  EXPECT_THAT(plan_error("loss_gates: {f16: 0.1}\n"), HasSubstr("`loss_gates.f16` is a section"));
}

// --- flags
// ----------------------------------------------------------------------------------------

TEST(Overrides, FlagsReplaceAxes) {
  const Plan plan = plan_of("workload: {seq_len: [32, 64], gen_len: 8}\nmodel: {heads: 8:8}\n",
                            {{"--seq-len", "seq_len", "128-512*2"},
                             {"--heads", "heads", "8:2,32:8"},
                             {"--engine", "engine", "fp16,k=f16,v=int8:g32,paged:48/int4:g32"},
                             {"--threads", "threads", "1,2"},
                             {"--rounds", "rounds", "5"},
                             {"--set", "workload.repeat_kv", "true"}});
  ASSERT_EQ(plan.groups.size(), 3u * 2 * 2);
  ASSERT_EQ(plan.groups[0].cases.size(), 3u);
  EXPECT_EQ(plan.groups[0].cases[1].engine.name(), "contiguous/k=f16,v=int8:g32");
  EXPECT_EQ(first(plan).prompt_len, 120);
  EXPECT_EQ(plan.groups.back().cases[0].model.heads, 32);
  EXPECT_EQ(plan.sampling.rounds, 5);
  EXPECT_TRUE(first(plan).repeat_kv);
}

TEST(Overrides, SeqLenAloneKeepsGenLen) {
  const std::string yaml = "workload: {prompt_len: 100, gen_len: 8}\n";
  const Case alone = first(plan_of(yaml, {{"--seq-len", "workload.seq_len", "64"}}));
  EXPECT_EQ(alone.prompt_len, 56);
  EXPECT_EQ(alone.gen_len, 8);
  const Case with_prompt = first(plan_of(yaml, {{"--seq-len", "workload.seq_len", "64"},
                                                {"--prompt-len", "workload.prompt_len", "60"}}));
  EXPECT_EQ(with_prompt.prompt_len, 60);
  EXPECT_EQ(with_prompt.gen_len, 4);
  const Case with_gen = first(plan_of(
      yaml, {{"--seq-len", "workload.seq_len", "64"}, {"--gen-len", "workload.gen_len", "60"}}));
  EXPECT_EQ(with_gen.prompt_len, 4);
}

TEST(Overrides, PromptLenReplacesTheFilesSeqLen) {
  const Case c = first(
      plan_of("workload: {seq_len: 64, gen_len: 8}\n", {{"--prompt-len", "prompt_len", "10"}}));
  EXPECT_EQ(c.prompt_len, 10);
  EXPECT_EQ(c.gen_len, 8);
  EXPECT_THAT(plan_error("name: x\n", {{"--seq-len", "seq_len", "64"},
                                       {"--prompt-len", "prompt_len", "10"},
                                       {"--gen-len", "gen_len", "10"}}),
              StartsWith("--seq-len: prompt_len and gen_len are given too"));
}

TEST(Overrides, GivenLayersReplaceTheWorkingSet) {
  const std::string yaml =
      "model: {layers: auto}\n"
      "workload: {level: attention, prompt_len: 1024, working_set_gib: 1}\n";
  EXPECT_EQ(first(plan_of(yaml, {{"--set", "model.layers", "3"}})).model.layers, 3);
  EXPECT_EQ(first(plan_of(yaml, {{"--set", "workload.working_set_gib", "0.5"}})).model.layers,
            1024);
  EXPECT_THAT(plan_error(yaml, {{"--set", "model.layers", "3"},
                                {"--set", "workload.working_set_gib", "0.5"}}),
              StartsWith("--set workload.working_set_gib: it picks the number of layers"));
}

TEST(Overrides, ModelComesBeforeSetWhateverTheOrder) {
  const Plan plan = plan_of("model: {preset: gpt2}\n",
                            {{"--set", "model.layers", "3"}, {"--model", "model", "seed-gqa"}});
  EXPECT_EQ(first(plan).model.name, "seed-gqa");
  EXPECT_EQ(first(plan).model.layers, 3);
}

TEST(Overrides, ModelFindsOutWhatItIs) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("hf"));
  EXPECT_THAT(plan_error("name: x\n", {{"--model", "model", folder.path("hf")}}),
              AllOf(StartsWith("--model: "), HasSubstr("config.json")));
  EXPECT_THAT(plan_error("name: x\n", {{"--model", "model", "none.gguf"}}),
              StartsWith("--model: there is no `none.gguf`"));
  EXPECT_THAT(plan_error("name: x\n", {{"--model", "model", "no/such"}}),
              StartsWith("--model: there is no file or folder `no/such`"));
  EXPECT_THAT(plan_error("name: x\n", {{"--model", "model", "gtp2"}}),
              HasSubstr("--model: `gtp2` is not known (did you mean `gpt2`?)"));
}

TEST(Overrides, ErrorsNameTheFlag) {
  EXPECT_THAT(plan_error("name: x\n", {{"--gen-len", "gen_len", "many"}}),
              StartsWith("--gen-len: expected a whole number"));
  EXPECT_THAT(
      plan_error("name: x\n", {{"--set", "workload.gen_lem", "4"}}),
      StartsWith("--set: unknown key `workload.gen_lem` (did you mean `workload.gen_len`?)"));
  EXPECT_THAT(plan_error("name: x\n", {{"--set", "gen_lenn", "4"}}),
              StartsWith("--set: unknown key"));
  EXPECT_THAT(plan_error("name: x\n", {{"--set", "workload", "4"}}),
              StartsWith("--set: `workload` is a section; set one of its keys"));
  EXPECT_THAT(plan_error("name: x\n", {{"--set", "workload.gen_len", "0"}}),
              StartsWith("--set workload.gen_len: 0 is out of range"));
  EXPECT_THAT(plan_error("name: x\n", {{"--engine", "engine", "paged,nonsense"}}),
              StartsWith("--engine: "));
  EXPECT_THAT(plan_error("name: x\n", {{"--engine", "engine", ""}}), StartsWith("--engine: "));
  EXPECT_THAT(plan_error("name: x\n", {{"--batch", "batch", "1,1"}}),
              StartsWith("--batch: 1 stands here a second time"));
}

TEST(Overrides, GatesCanBeSet) {
  const Plan plan =
      plan_of("engines: [fp16]\n", {{"--set", "loss_gates.f16.attend_rel_rms_max", "1e-3"}});
  EXPECT_EQ(first(plan).gate.attend_rel_rms_max, 1e-3);
}

// --- the plan as run
// --------------------------------------------------------------------------------

TEST(AsRun, ReadsBackAsTheSameCases) {
  const TempFolder folder;
  const Plan plan =
      load_plan(folder.write("p.yaml",
                             "engines: [fp16, \"k=f16,v=int8:g32\"]\nmodel: {heads: [8:8, 8:2]}\n"
                             "workload: {seq_len: [64, 128], gen_len: 8}\n"
                             "loss_gates: {f16: {attend_rel_rms_max: 0.01}}\n"),
                {{"--set", "sampling.budget_s", "2.5"}});
  EXPECT_EQ(plan.as_run["sampling"]["budget_s"], 2.5);
  EXPECT_EQ(plan.as_run["sampling"]["rounds"], 3);  // a default, written out
  EXPECT_EQ(plan.as_run["workload"]["level"], "model");
  EXPECT_EQ(plan.as_run["loss_gates"]["f16"]["attend_rel_rms_max"], 0.01);
  EXPECT_TRUE(plan.as_run["threads"].is_number());

  const Plan again = load_plan(folder.write("as_run.json", plan.as_run.dump(2)), {});
  ASSERT_EQ(again.groups.size(), plan.groups.size());
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    ASSERT_EQ(again.groups[g].cases.size(), plan.groups[g].cases.size());
    for (size_t i = 0; i < plan.groups[g].cases.size(); ++i) {
      EXPECT_EQ(to_json(again.groups[g].cases[i]), to_json(plan.groups[g].cases[i]));
    }
  }
  EXPECT_EQ(again.as_run, plan.as_run);
}

// The decimal point is a point in every locale.
TEST(Plan, NumbersDoNotHangOnTheLocale) {
  const std::string old = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    std::setlocale(LC_ALL, name);  // where it is not installed nothing changes
    const Plan plan = plan_of("sampling: {target_width: 0.125, budget_s: 1.5e1}\n");
    EXPECT_EQ(plan.sampling.target_width, 0.125);
    EXPECT_EQ(plan.sampling.budget_s, 15);
    EXPECT_THAT(plan.as_run.dump(), HasSubstr("\"target_width\":0.125"));
    EXPECT_THAT(plan_error("sampling:\n  target_width: 0,125\n"), HasSubstr("got `0,125`"));
  }
  std::setlocale(LC_ALL, old.c_str());
}

}  // namespace
}  // namespace kvmark
