#include "engines/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engines/core/check.h"
#include "engines/model/gguf.h"
#include "engines/model/weights.h"

namespace kvmark {
namespace {

using nlohmann::json;
using testing::HasSubstr;

template <typename Call>
std::string usage_error(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Presets, HaveTheirShapes) {
  for (const std::string& name : model_preset_names()) {
    const ModelConfig c = model_preset(name);
    EXPECT_EQ(c.name, name);
    EXPECT_NO_THROW(check_config(c));
    EXPECT_FALSE(check_spec(kv_spec(c, 1, c.context, 1, false)));
  }
  // As published: 124 M, 135 M, 8.03 B and 7.62 B.
  EXPECT_EQ(parameter_count(model_preset("gpt2")), 124439808);
  EXPECT_EQ(parameter_count(model_preset("smollm2-135m")), 134515008);
  EXPECT_EQ(parameter_count(model_preset("llama-3-8b")), 8030261248);
  EXPECT_EQ(parameter_count(model_preset("qwen2.5-7b")), 7615616512);
}

TEST(Presets, AWrongNameGetsTheNearest) {
  EXPECT_THAT(usage_error([] { model_preset("lama-3-8b"); }), HasSubstr("`llama-3-8b`"));
  EXPECT_THAT(usage_error([] { model_preset("zzz"); }), HasSubstr("seed-gqa, gpt2"));
}

TEST(KvSpecOfAModel, StoresKvHeadsUnlessRepeated) {
  const ModelConfig c = model_preset("smollm2-135m");
  const KvSpec spec = kv_spec(c, 4, 100, 20, false);
  EXPECT_EQ(spec.layers, 30);
  EXPECT_EQ(spec.heads, 9);
  EXPECT_EQ(spec.kv_heads, 3);
  EXPECT_EQ(spec.k_dim, 64);
  EXPECT_EQ(spec.v_dim, 64);
  ASSERT_TRUE(spec.rope);
  EXPECT_EQ(spec.rope->theta, 100000);
  EXPECT_EQ(spec.max_seqs, 4);
  EXPECT_EQ(spec.max_len, 100);
  EXPECT_EQ(spec.max_rows, 20);
  EXPECT_EQ(kv_spec(c, 1, 1, 1, true).kv_heads, 9);
  EXPECT_FALSE(kv_spec(model_preset("gpt2"), 1, 1, 1, false).rope);
}

TEST(CheckConfig, NamesTheImpossibleField) {
  const auto error = [](const char* preset, auto change) {
    ModelConfig c = model_preset(preset);
    change(c);
    return usage_error([&] { check_config(c); });
  };
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.kv_heads = 3; }),
              HasSubstr("multiple of kv_heads"));
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.rope.dims = 63; }), HasSubstr("rope.dims is 63"));
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.rope.dims = 66; }), HasSubstr("rope.dims is 66"));
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.rope.theta = 0; }), HasSubstr("rope.theta is 0"));
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.layers = 0; }), HasSubstr("layers is 0"));
  EXPECT_THAT(error("seed-gqa", [](auto& c) { c.vocab = -5; }), HasSubstr("vocab is -5"));
  EXPECT_THAT(error("seed-gqa",
                    [](auto& c) {
                      c.heads = c.head_dim = 1 << 14;
                      c.kv_heads = 1;
                    }),
              HasSubstr("heads * head_dim"));
  EXPECT_THAT(error("gpt2", [](auto& c) { c.kv_heads = 4; }), HasSubstr("must be equal"));
  EXPECT_THAT(error("gpt2", [](auto& c) { c.norm_eps = -1; }), HasSubstr("norm_eps is -1"));
}

// ---- Hugging Face.

class HfFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir); }
  void TearDown() override { std::filesystem::remove_all(dir); }
  void write(const std::string& text) { std::ofstream(dir + "/config.json") << text; }
  ModelConfig read(const json& config) {
    write(config.dump());
    return config_from_hf(dir);
  }
  // The error for the base file with one key changed.
  std::string error(json config, const char* key, const json& value) {
    config[key] = value;
    write(config.dump());
    const std::string text = usage_error([&] { config_from_hf(dir); });
    EXPECT_THAT(text, HasSubstr("config.json"));
    EXPECT_THAT(text, HasSubstr(key));
    return text;
  }

  const std::string dir =
      testing::TempDir() + "/hf-" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const json llama = {
      {"model_type", "llama"},    {"num_hidden_layers", 2},         {"hidden_size", 48},
      {"num_attention_heads", 6}, {"num_key_value_heads", 2},       {"intermediate_size", 80},
      {"vocab_size", 99},         {"max_position_embeddings", 256}, {"rms_norm_eps", 1e-6},
      {"rope_theta", 5e5},        {"tie_word_embeddings", true},    {"hidden_act", "silu"},
      {"rope_scaling", nullptr}};
  const json gpt2 = {{"model_type", "gpt2"}, {"n_layer", 2},
                     {"n_embd", 48},         {"n_head", 4},
                     {"vocab_size", 99},     {"n_positions", 64},
                     {"n_inner", nullptr},   {"activation_function", "gelu_new"}};
};

TEST_F(HfFolder, Llama) {
  const ModelConfig c = read(llama);
  EXPECT_EQ(c.name, "hf-Llama");
  EXPECT_EQ(c.family, Family::llama);
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.d_model, 48);
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.ffn, 80);
  EXPECT_EQ(c.vocab, 99);
  EXPECT_EQ(c.context, 256);
  EXPECT_FLOAT_EQ(c.norm_eps, 1e-6f);
  EXPECT_EQ(c.rope.theta, 5e5);
  EXPECT_EQ(c.rope.dims, 8);
  EXPECT_EQ(c.rope.pairing, RopePairing::halves);
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_FALSE(c.qkv_bias);
}

TEST_F(HfFolder, DefaultsAndOtherSpellings) {
  json config = llama;
  config["head_dim"] = 20;
  config["rope_scaling"] = {{"rope_type", "default"}};
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  config.erase("num_key_value_heads");
  config.erase("tie_word_embeddings");
  const ModelConfig c = read(config);
  EXPECT_EQ(c.head_dim, 20);
  EXPECT_EQ(c.rope.dims, 20);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_EQ(c.kv_heads, 6);
  EXPECT_FALSE(c.tied_embeddings);
}

TEST_F(HfFolder, Qwen2HasBiasesAndIgnoresAnUnusedWindow) {
  json config = llama;
  config["model_type"] = "qwen2";
  config["sliding_window"] = 32;
  config["use_sliding_window"] = false;
  EXPECT_TRUE(read(config).qkv_bias);
  config.erase("use_sliding_window");
  EXPECT_TRUE(read(config).qkv_bias);
  config["use_sliding_window"] = true;
  EXPECT_THAT(error(config, "sliding_window", 16), HasSubstr("a model trained with a window"));
}

TEST_F(HfFolder, Gpt2) {
  const ModelConfig c = read(gpt2);
  EXPECT_EQ(c.family, Family::gpt2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_dim, 12);
  EXPECT_EQ(c.ffn, 192);
  EXPECT_EQ(c.context, 64);
  EXPECT_TRUE(c.tied_embeddings);
}

TEST_F(HfFolder, WhatIsNotComputedIsRefusedWithTheReason) {
  EXPECT_THAT(error(llama, "model_type", "mixtral"), HasSubstr("expected llama, mistral, qwen2"));
  EXPECT_THAT(error(llama, "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}),
              HasSubstr("scaled rotary positions are not supported"));
  EXPECT_THAT(error(llama, "rope_scaling", {{"type", "linear"}, {"factor", 2}}),
              HasSubstr("not supported"));
  EXPECT_THAT(error(llama, "rope_parameters", {{"rope_type", "yarn"}}), HasSubstr("not supported"));
  EXPECT_THAT(error(llama, "attention_bias", true), HasSubstr("expected false"));
  EXPECT_THAT(error(llama, "hidden_act", "gelu"), HasSubstr("expected \"silu\""));
  EXPECT_THAT(error(llama, "partial_rotary_factor", 0.5), HasSubstr("expected 1"));
  json mistral = llama;
  mistral["model_type"] = "mistral";
  EXPECT_THAT(error(mistral, "sliding_window", 64), HasSubstr("window"));
  mistral["sliding_window"] = 256;
  EXPECT_NO_THROW(read(mistral));
  EXPECT_THAT(error(gpt2, "activation_function", "relu"), HasSubstr("gelu_new"));
  EXPECT_THAT(error(gpt2, "scale_attn_by_inverse_layer_idx", true), HasSubstr("expected false"));
  EXPECT_THAT(error(gpt2, "n_embd", 50), HasSubstr("multiple of \"n_head\""));
}

TEST_F(HfFolder, WrongValuesNameTheKeyAndWhatWasExpected) {
  EXPECT_THAT(error(llama, "num_hidden_layers", "two"),
              HasSubstr("expected a whole number ≥ 1, found \"two\""));
  EXPECT_THAT(error(llama, "vocab_size", 0), HasSubstr("found 0"));
  EXPECT_THAT(error(llama, "vocab_size", 1e300), HasSubstr("a whole number"));
  EXPECT_THAT(error(llama, "hidden_size", nullptr), HasSubstr("is missing"));
  EXPECT_THAT(error(llama, "rope_theta", -1), HasSubstr("a number > 0"));
  EXPECT_THAT(error(llama, "tie_word_embeddings", "yes"), HasSubstr("true or false"));
  EXPECT_THAT(error(llama, "model_type", 5), HasSubstr("a string"));
  json odd = llama;
  odd["num_key_value_heads"] = 4;
  write(odd.dump());
  EXPECT_THAT(usage_error([&] { config_from_hf(dir); }), HasSubstr("multiple of kv_heads"));
}

TEST_F(HfFolder, BrokenFiles) {
  write("{\"model_type\": ");
  EXPECT_THAT(usage_error([&] { config_from_hf(dir); }), HasSubstr("config.json: "));
  write("{\"model_type\": \"llama\", \"rope_theta\": 1e400}");
  EXPECT_THAT(usage_error([&] { config_from_hf(dir); }),
              HasSubstr("config.json: not valid JSON: number overflow parsing '1e400'"));
  write("[1]");
  EXPECT_THAT(usage_error([&] { config_from_hf(dir); }), HasSubstr("a JSON object"));
  EXPECT_THAT(usage_error([&] { config_from_hf(dir + "/none"); }), HasSubstr("cannot be read"));
}

// ---- GGUF.

ModelConfig golden(const std::string& name) {
  return config_from_gguf(
      GgufFile(std::string(KVMARK_SOURCE_DIR) + "/tests/data/golden/" + name + ".gguf"));
}

TEST(GgufConfig, ReadsEveryArchitecture) {
  const ModelConfig llama = golden("llama-6x2-hd20");
  EXPECT_EQ(llama.name, "llama-6x2-hd20");
  EXPECT_EQ(llama.family, Family::llama);
  EXPECT_EQ(llama.layers, 3);
  EXPECT_EQ(llama.d_model, 48);
  EXPECT_EQ(llama.heads, 6);
  EXPECT_EQ(llama.kv_heads, 2);
  EXPECT_EQ(llama.head_dim, 20);
  EXPECT_EQ(llama.ffn, 80);
  EXPECT_EQ(llama.vocab, 64);
  EXPECT_EQ(llama.rope.theta, 100000);
  EXPECT_EQ(llama.rope.dims, 20);
  EXPECT_EQ(llama.rope.pairing, RopePairing::adjacent);
  EXPECT_FALSE(llama.tied_embeddings);

  const ModelConfig qwen2 = golden("qwen2-8x2");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_EQ(qwen2.rope.pairing, RopePairing::halves);

  const ModelConfig gpt2 = golden("gpt2-4");
  EXPECT_EQ(gpt2.family, Family::gpt2);
  EXPECT_EQ(gpt2.kv_heads, 4);
  EXPECT_TRUE(gpt2.tied_embeddings);
}

TEST(GgufConfig, AFileWithoutAModelIsRefused) { EXPECT_ANY_THROW(golden("tensor-types")); }

}  // namespace
}  // namespace kvmark
