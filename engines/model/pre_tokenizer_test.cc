#include "engines/model/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/model/unicode.h"

namespace kvmark {
namespace {

using testing::ElementsAre;

using Words = std::vector<std::string_view>;

Words split(std::string_view name, std::string_view text) {
  return split_words(find_pre_tokenizer(name).value(), text);
}

TEST(Unicode, DecodesOnlyWellFormedSequences) {
  const auto decode = [](std::string_view text) { return code_point_at(text, 0); };
  EXPECT_EQ(decode("a").code, U'a');
  EXPECT_EQ(decode("é").code, U'é');
  EXPECT_EQ(decode("中").code, U'中');
  EXPECT_EQ(decode("😀").code, U'😀');
  EXPECT_EQ(decode("😀").bytes, 4u);
  EXPECT_EQ(decode("\xf4\x8f\xbf\xbf").code, char32_t{0x10ffff});
  for (const std::string_view bad :
       {"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xe4\xb8", "\xff"}) {
    EXPECT_EQ(decode(bad).code, kInvalidCode) << testing::PrintToString(bad);
    EXPECT_EQ(decode(bad).bytes, 1u);
  }
}

TEST(Unicode, ClassesOfCharacters) {
  for (const char32_t c : std::u32string_view(U"azAZéßЖ中한ªʰǅ")) {
    EXPECT_EQ(char_class(c), CharClass::letter) << std::hex << uint32_t{c};
  }
  for (const char32_t c : std::u32string_view(U"09½²Ⅷ٣１")) {
    EXPECT_EQ(char_class(c), CharClass::number) << std::hex << uint32_t{c};
  }
  for (const char32_t c : {0x9, 0xa, 0xd, 0x20, 0x85, 0xa0, 0x2003, 0x2028, 0x3000}) {
    EXPECT_EQ(char_class(c), CharClass::space) << std::hex << uint32_t{c};
  }
  for (const char32_t c : {0x0, 0x2e, 0x5f, 0x301, 0x200b, 0xfeff, 0x1f600, 0x10ffff}) {
    EXPECT_EQ(char_class(c), CharClass::other) << std::hex << uint32_t{c};
  }
  EXPECT_EQ(char_class(kInvalidCode), CharClass::other);
}

TEST(PreTokenizer, NamesAreKnown) {
  EXPECT_FALSE(find_pre_tokenizer("smolm").has_value());
  EXPECT_THAT(pre_tokenizer_names(),
              ElementsAre("gpt-2", "default", "smollm", "llama-bpe", "qwen2"));
}

TEST(PreTokenizer, Gpt2) {
  EXPECT_THAT(split("gpt-2", ""), ElementsAre());
  EXPECT_THAT(split("gpt-2", "Hello, world!"), ElementsAre("Hello", ",", " world", "!"));
  EXPECT_THAT(split("gpt-2", "it's WE'LL they've"),
              ElementsAre("it", "'s", " WE", "'", "LL", " they", "'ve"));
  EXPECT_THAT(split("gpt-2", "a  b   \n c\n"), ElementsAre("a", " ", " b", "   \n", " c", "\n"));
  EXPECT_THAT(split("gpt-2", "x 1234 5"), ElementsAre("x", " 1234", " 5"));
  EXPECT_THAT(split("gpt-2", "\tx ..!"), ElementsAre("\t", "x", " ..!"));
  EXPECT_THAT(split("gpt-2", "naïve 中文。"), ElementsAre("naïve", " 中文", "。"));
  EXPECT_THAT(split("gpt-2", "a\xff\xfe b"), ElementsAre("a", "\xff\xfe", " b"));
}

TEST(PreTokenizer, SmollmCutsAtEveryNumber) {
  EXPECT_THAT(split("smollm", "x 123 y"), ElementsAre("x", " ", "1", "2", "3", " y"));
  EXPECT_THAT(split("smollm", "a  1"), ElementsAre("a", "  ", "1"));  // gpt-2 would give " ", " 1"
  EXPECT_THAT(split("smollm", "3.14½"), ElementsAre("3", ".", "1", "4", "½"));
  EXPECT_THAT(split("smollm", "it's"), ElementsAre("it", "'s"));
}

TEST(PreTokenizer, Llama3AndQwen2) {
  EXPECT_THAT(split("llama-bpe", "x 12345"), ElementsAre("x", " ", "123", "45"));
  EXPECT_THAT(split("qwen2", "x 123"), ElementsAre("x", " ", "1", "2", "3"));
  for (const std::string_view name : {"llama-bpe", "qwen2"}) {
    EXPECT_THAT(split(name, "WE'LL it's"), ElementsAre("WE", "'LL", " it", "'s"));
    EXPECT_THAT(split(name, "(word) #tag\ttab"), ElementsAre("(word", ")", " #", "tag", "\ttab"));
    EXPECT_THAT(split(name, "end.\n\n  next"), ElementsAre("end", ".\n\n", " ", " next"));
    EXPECT_THAT(split(name, "a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
    EXPECT_THAT(split(name, "a   "), ElementsAre("a", "   "));
  }
}

TEST(PreTokenizer, WordsCoverTheText) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * i * 31 >> 3);
  for (const std::string& name : pre_tokenizer_names()) {
    std::string joined;
    for (const std::string_view word : split(name, text)) {
      EXPECT_FALSE(word.empty());
      joined += word;
    }
    EXPECT_EQ(joined, text) << name;
  }
}

}  // namespace
}  // namespace kvmark
