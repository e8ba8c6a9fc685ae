#include "engines/model/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engines/model/gguf_testing.h"

namespace kvmark {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<int32_t> types;
  std::string model = "gpt2";
  std::string pre = "smollm";

  GgufWriter writer() const {
    GgufWriter writer;
    writer.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre);
    writer.strings("tokenizer.ggml.tokens", tokens).strings("tokenizer.ggml.merges", merges);
    if (!types.empty()) writer.integers("tokenizer.ggml.token_type", types);
    return writer;
  }
};

Tokenizer load(const GgufWriter& writer) {
  const TempFile temp(writer.bytes());
  const GgufFile file(temp.path());
  return Tokenizer(file);
}

std::string loading(const GgufWriter& writer) {
  try {
    load(writer);
    return "";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/proc/self/fd/"));
    return error.what();
  }
}

// 0–6, with two special tokens at the end: one control, one user-defined.
Vocabulary letters() {
  return {{"a", "b", "c", "Ġ", "ab", "bc", "Ġa", "<|end|>", "<abc>"},
          {"b c", "a b", "Ġ a"},
          {1, 1, 1, 1, 1, 1, 1, 3, 4}};
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  const Tokenizer tokenizer = load(letters().writer());
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(0, 5));  // "b c" comes before "a b"
  EXPECT_THAT(tokenizer.encode("abab"), ElementsAre(4, 4));
  EXPECT_THAT(tokenizer.encode("ab ab"), ElementsAre(4, 3, 4));  // "a b" comes before "Ġ a"
  EXPECT_THAT(tokenizer.encode(" a"), ElementsAre(6));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.eos(), -1);
}

TEST(Tokenizer, OverlappingPairsMergeFromTheLeft) {
  const Vocabulary vocabulary = {{"a", "aa", "aaaa"}, {"a a", "aa aa"}, {}};
  const Tokenizer tokenizer = load(vocabulary.writer());
  EXPECT_THAT(tokenizer.encode("aaa"), ElementsAre(1, 0));
  EXPECT_THAT(tokenizer.encode("aaaaaaa"), ElementsAre(2, 1, 0));
}

TEST(Tokenizer, SpecialTokensAreTakenOnRequest) {
  const Tokenizer tokenizer = load(letters().writer().integer("tokenizer.ggml.eos_token_id", 7));
  EXPECT_EQ(tokenizer.eos(), 7);
  EXPECT_THAT(tokenizer.encode("ab<|end|>c<|end|>", true), ElementsAre(4, 7, 2, 7));
  EXPECT_THAT(tokenizer.encode("ab<abc>"), ElementsAre(4, 8));  // user-defined: always
  EXPECT_THROW(tokenizer.encode("<|end|>"), RuntimeError);      // spelled out, and no "<" in there
  EXPECT_EQ(tokenizer.decode({4, 7, 6, 8}), "ab<|end|> a<abc>");
}

TEST(Tokenizer, LongerSpecialTokensWin) {
  const Vocabulary vocabulary = {{"<s", "<s>", "x"}, {}, {3, 3, 1}};
  EXPECT_THAT(load(vocabulary.writer()).encode("<s>x<s", true), ElementsAre(1, 2, 0));
}

TEST(Tokenizer, BeginningOfTextWhereTheFileAsksForIt) {
  GgufWriter with = letters().writer();
  with.integer("tokenizer.ggml.bos_token_id", 7).flag("tokenizer.ggml.add_bos_token", true);
  EXPECT_THAT(load(with).encode("ab"), ElementsAre(7, 4));
  GgufWriter without = letters().writer();
  without.integer("tokenizer.ggml.bos_token_id", 7).flag("tokenizer.ggml.add_bos_token", false);
  EXPECT_THAT(load(without).encode("ab"), ElementsAre(4));
}

TEST(Tokenizer, BytesThatTheVocabularyLacks) {
  const Tokenizer tokenizer =
      load(letters().writer().integer("tokenizer.ggml.unknown_token_id", 7));
  EXPECT_THAT(tokenizer.encode("a\x04\xff"), ElementsAre(0, 7, 7));
  try {
    load(letters().writer()).encode("a\x04");
    FAIL() << "an unknown byte was accepted";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("byte 0x04"));
  }
}

TEST(Tokenizer, EveryByteComesBack) {
  Vocabulary vocabulary;
  for (int c = 0; c < 0x144; ++c) {  // the 256 characters that spell bytes, and some more
    std::string token;
    if (c < 0x80) {
      token = std::string(1, static_cast<char>(c));
    } else {
      token = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    }
    vocabulary.tokens.push_back(token);
  }
  const Tokenizer tokenizer = load(vocabulary.writer());
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
  EXPECT_THAT(tokenizer.encode(" \n"), ElementsAre(0x120, 0x10a));  // "Ġ", "Ċ"
  EXPECT_THAT(tokenizer.encode("é"), ElementsAre(0xc3, 0xa9));
}

TEST(Tokenizer, Llama3TakesWholeWordsUnmerged) {
  Vocabulary vocabulary = {{"a", "b", "c", "ab", "bc", "abc"}, {"b c", "a b"}, {}};
  EXPECT_THAT(load(vocabulary.writer()).encode("abc"), ElementsAre(0, 4));
  vocabulary.pre = "llama-bpe";
  EXPECT_THAT(load(vocabulary.writer()).encode("abc"), ElementsAre(5));
}

// What an outside tokenizer makes of varied texts with a real vocabulary.
TEST(Tokenizer, AgreesWithGoldenTokens) {
  std::ifstream stream(KVMARK_SOURCE_DIR "/tests/data/tokenizer/smollm2.json");
  ASSERT_TRUE(stream);
  const nlohmann::json golden = nlohmann::json::parse(stream);
  Vocabulary vocabulary;
  vocabulary.tokens = golden["tokens"].get<std::vector<std::string>>();
  vocabulary.merges = golden["merges"].get<std::vector<std::string>>();
  vocabulary.types.assign(vocabulary.tokens.size(), 1);
  std::fill_n(vocabulary.types.begin(), golden["control"].get<size_t>(), 3);
  const Tokenizer tokenizer =
      load(vocabulary.writer().integer("tokenizer.ggml.unknown_token_id", 0));
  ASSERT_GE(golden["cases"].size(), 7u);
  for (const nlohmann::json& example : golden["cases"]) {
    const std::string text = example["text"];
    EXPECT_EQ(tokenizer.encode(text, true), example["ids"].get<std::vector<int32_t>>()) << text;
  }
}

TEST(Tokenizer, LongWordsTakeNoQuadraticTime) {
  const Vocabulary vocabulary = {{"a", "aa", "aaaa"}, {"a a", "aa aa"}, {}};
  const Tokenizer tokenizer = load(vocabulary.writer());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer.encode(std::string(400000, 'a')).size(), 100000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Tokenizer, RefusesFilesWithoutOne) {
  EXPECT_THAT(loading(GgufWriter()), HasSubstr("has no key 'tokenizer.ggml.model'"));
  Vocabulary vocabulary = letters();
  vocabulary.model = "llama";
  EXPECT_THAT(loading(vocabulary.writer()), HasSubstr("of the kind 'llama'"));
  vocabulary = letters();
  vocabulary.pre = "tekken";
  EXPECT_THAT(loading(vocabulary.writer()),
              AllOf(HasSubstr("unknown pre-tokenizer 'tekken'"), HasSubstr("smollm")));
}

TEST(Tokenizer, RefusesDamagedVocabularies) {
  Vocabulary vocabulary = letters();
  vocabulary.types.pop_back();
  EXPECT_THAT(loading(vocabulary.writer()), HasSubstr("8 entries for 9 tokens"));
  for (const std::string merge : {"a c", "ab", "", " ", "a ", "x y"}) {
    vocabulary = letters();
    vocabulary.merges.push_back(merge);
    EXPECT_THAT(loading(vocabulary.writer()), HasSubstr("merge 3 ('" + merge + "')")) << merge;
  }
  EXPECT_THAT(loading(letters().writer().integer("tokenizer.ggml.eos_token_id", 9)),
              HasSubstr("eos_token_id is 9, outside the vocabulary of 9"));
  vocabulary = {};
  EXPECT_THAT(loading(vocabulary.writer()), HasSubstr("0 tokens"));
  EXPECT_THROW(load(letters().writer()).decode({9}), LogicError);
  EXPECT_THROW(load(letters().writer()).decode({-1}), LogicError);
}

}  // namespace
}  // namespace kvmark
