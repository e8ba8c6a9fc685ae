#include "engines/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "engines/model/gguf_testing.h"
#include "engines/model/gguf_types.h"
#include "engines/model/tokenizer.h"

namespace kvmark {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kGolden = KVMARK_SOURCE_DIR "/tests/data/golden/";

// What opening a file with these bytes says; "" when it opens.
std::string opening(const std::string& bytes) {
  const TempFile file(bytes);
  try {
    const GgufFile gguf(file.path());
    return "";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.path()));
    return error.what();
  }
}

std::string opening(const GgufWriter& writer) { return opening(writer.bytes()); }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

// A file that has every kind of thing: values of each type, a tokenizer, tensors of four types.
std::string small_file() {
  GgufWriter writer;
  writer.text("general.architecture", "llama").flag("flag", true).number("eps", 1e-5f);
  writer.raw_value("u8", 0, "\x07")
      .raw_value("i16", 3, "\xfe\xff")
      .raw_value("f64", 12, "12345678");
  writer.raw_value("bools", 9, GgufBytes().put(7u).put(uint64_t{2}).put_raw("\x01\x01").str());
  writer.raw_value("floats", 9, GgufBytes().put(6u).put(uint64_t{2}).put(1.f).put(2.f).str());
  writer.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  writer.strings("tokenizer.ggml.tokens", {"<unk>", "a", "b", "Ġ", "ab", "Ġab"});
  writer.integers("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1});
  writer.strings("tokenizer.ggml.merges", {"a b", "Ġ ab"});
  writer.integer("tokenizer.ggml.unknown_token_id", 0).alignment(32);
  writer.tensor_f32("norm", {3}, {1, 2, 3});
  writer.tensor("half", GgufType::f16, {2, 2, 2}, std::string(16, '\x3c'));
  writer.tensor("q8", GgufType::q8_0, {32, 2}, std::string(68, '\x11'));
  writer.tensor("q4k", GgufType::q4_k, {256}, std::string(144, '\x5a'));
  return writer.bytes();
}

// Uses everything that an opened file offers.
void use(const GgufFile& file) {
  std::vector<float> row;
  for (const GgufTensor& tensor : file.tensors()) {
    row.resize(static_cast<size_t>(tensor.cols));
    for (int64_t r = 0; r < tensor.rows; ++r) decode_gguf_row(tensor, r, row.data());
  }
  const Tokenizer tokenizer(file);
  tokenizer.decode(tokenizer.encode("ab <unk> b\xff", true));
}

TEST(GgufFile, ReadsMetadataOfEveryType) {
  GgufWriter writer(2);
  writer.raw_value("u8", 0, "\xff").raw_value("i8", 1, "\xff");
  writer.raw_value("u16", 2, "\xff\xff").raw_value("i16", 3, "\xff\xff");
  writer.integer("u32", 4000000000u).raw_value("i32", 5, "\xff\xff\xff\xff");
  writer.raw_value("u64", 10, GgufBytes().put(uint64_t{1} << 40).str());
  writer.raw_value("i64", 11, GgufBytes().put(int64_t{-5}).str());
  writer.number("f32", 0.5f).raw_value("f64", 12, GgufBytes().put(0.25).str());
  writer.flag("yes", true).text("name", "tiny");
  writer.integers("list", {3, -1}).strings("texts", {"", "x"});
  writer.raw_value("bools", 9,
                   GgufBytes().put(7u).put(uint64_t{2}).put(uint8_t{1}).put(uint8_t{0}).str());
  const TempFile temp(writer.bytes());
  const GgufFile file(temp.path());

  EXPECT_EQ(file.integer("u8"), 255);
  EXPECT_EQ(file.integer("i8"), -1);
  EXPECT_EQ(file.integer("u16"), 65535);
  EXPECT_EQ(file.integer("i16"), -1);
  EXPECT_EQ(file.integer("u32"), 4000000000);
  EXPECT_EQ(file.integer("i32"), -1);
  EXPECT_EQ(file.integer("u64"), int64_t{1} << 40);
  EXPECT_EQ(file.integer("i64"), -5);
  EXPECT_EQ(file.number("f32"), 0.5);
  EXPECT_EQ(file.number("f64"), 0.25);
  EXPECT_EQ(file.number("u8"), 255.0);
  EXPECT_TRUE(std::get<bool>(*file.find("yes")));
  EXPECT_EQ(file.text("name"), "tiny");
  EXPECT_THAT(file.integers("list"), ElementsAre(3, -1));
  EXPECT_THAT(file.integers("bools"), ElementsAre(1, 0));
  EXPECT_THAT(file.strings("texts"), ElementsAre("", "x"));
  EXPECT_EQ(file.find("nothing"), nullptr);
  EXPECT_TRUE(file.tensors().empty());
}

TEST(GgufFile, LookUpsNameFileKeyAndType) {
  const TempFile temp(GgufWriter().text("name", "x").integers("list", {1}).bytes());
  const GgufFile file(temp.path());
  EXPECT_THAT(error_of([&] { file.integer("llama.block_count"); }),
              AllOf(HasSubstr(temp.path()), HasSubstr("llama.block_count")));
  EXPECT_THAT(error_of([&] { file.integer("name"); }),
              AllOf(HasSubstr("'name' is text"), HasSubstr("expected an integer")));
  EXPECT_THAT(error_of([&] { file.number("list"); }), HasSubstr("is an array of integers"));
  EXPECT_THAT(error_of([&] { file.strings("list"); }), HasSubstr("expected an array of texts"));
  EXPECT_THAT(error_of([&] { file.text("list"); }), HasSubstr("expected text"));
  EXPECT_THAT(error_of([&] { file.integers("name"); }), HasSubstr("expected an array of integers"));
}

TEST(GgufFile, PlacesTensorsAtTheirAlignment) {
  for (const uint32_t alignment : {1u, 8u, 64u}) {
    GgufWriter writer;
    writer.alignment(alignment).tensor_f32("a", {3}, {1, 2, 3});
    writer.tensor_f32("b", {2, 2, 1, 2}, {4, 5, 6, 7, 8, 9, 10, 11});
    const TempFile temp(writer.bytes());
    const GgufFile file(temp.path());
    ASSERT_NE(file.tensor("b"), nullptr);
    EXPECT_EQ(file.tensor("c"), nullptr);
    const GgufTensor& b = *file.tensor("b");
    EXPECT_EQ(b.cols, 2);
    EXPECT_EQ(b.rows, 4);
    EXPECT_EQ(b.bytes.size(), 32u);
    std::array<float, 2> row = {};
    decode_gguf_row(b, 3, row.data());
    EXPECT_THAT(row, ElementsAre(10, 11));
    EXPECT_THROW(decode_gguf_row(b, 4, row.data()), LogicError);
    EXPECT_THROW(decode_gguf_row(b, -1, row.data()), LogicError);
  }
}

// Every number of every tensor type, bit for bit as the outside implementation decodes it.
TEST(GgufTypes, DecodeToTheGoldenNumbers) {
  const GgufFile file(kGolden + "tensor-types.gguf");
  std::ifstream expected(kGolden + "tensor-types.expected.f32", std::ios::binary);
  ASSERT_EQ(file.tensors().size(), 13u);
  for (const GgufTensor& tensor : file.tensors()) {
    ASSERT_EQ(tensor.cols, 512);
    ASSERT_EQ(tensor.rows, 4);
    for (int64_t row = 0; row < tensor.rows; ++row) {
      std::array<float, 512> got, want;
      decode_gguf_row(tensor, row, got.data());
      ASSERT_TRUE(expected.read(reinterpret_cast<char*>(want.data()), sizeof(want)));
      EXPECT_EQ(std::memcmp(got.data(), want.data(), sizeof(want)), 0)
          << gguf_type_name(tensor.type) << " row " << row;
    }
  }
}

TEST(GgufTypes, HaveNames) {
  EXPECT_EQ(gguf_type_name(GgufType::q4_1), "Q4_1");
  EXPECT_EQ(gguf_type_name(GgufType::bf16), "BF16");
  EXPECT_EQ(find_gguf_type(9), nullptr);
}

TEST(GgufFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(error_of([] { GgufFile("/nowhere/x.gguf"); }),
              AllOf(HasSubstr("/nowhere/x.gguf"), HasSubstr("No such file")));
  EXPECT_THAT(error_of([] { GgufFile(KVMARK_SOURCE_DIR); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([] { GgufFile("/dev/null"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(opening(std::string()), HasSubstr("empty"));
  const std::string fifo = fmt::format("{}/kvmark-{}.fifo", P_tmpdir, getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { GgufFile file(fifo); }), HasSubstr("not a regular file"));
  std::remove(fifo.c_str());
}

TEST(GgufFile, RefusesOtherMagicAndVersions) {
  EXPECT_THAT(opening("PK\x03\x04 and so on"), HasSubstr("no GGUF file"));
  EXPECT_THAT(opening("GGU"), HasSubstr("ends within the magic number"));
  EXPECT_THAT(opening(GgufWriter(1)), HasSubstr("version 1; kvmark reads versions 2 and 3"));
  EXPECT_THAT(opening(GgufWriter(0)), HasSubstr("version 0"));
  EXPECT_THAT(opening(GgufWriter(4)), HasSubstr("version 4"));
  EXPECT_THAT(opening(GgufWriter(0x03000000)), HasSubstr("big-endian"));
  EXPECT_THAT(opening("FUGG" + GgufWriter(3).bytes().substr(4)), HasSubstr("big-endian"));
}

TEST(GgufFile, RefusesCountsAndLengthsBeyondTheFile) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 62, kHuge}) {
    const auto header = [](uint64_t tensors, uint64_t values) {
      GgufBytes file;
      return file.put_raw("GGUF")
          .put(3u)
          .put(tensors)
          .put(values)
          .put_raw(std::string(64, '\0'))
          .str();
    };
    EXPECT_THAT(opening(header(count, 0)),
                AllOf(HasSubstr("number of tensors"), HasSubstr("byte 8 of")));
    EXPECT_THAT(opening(header(0, count)),
                AllOf(HasSubstr("metadata values"), HasSubstr("byte 16 of")));
    const std::string length = GgufBytes().put(count).put_raw("abc").str();
    EXPECT_THAT(opening(GgufWriter().raw_value("k", 8, length)),
                HasSubstr("the length of key 'k'"));
    for (const uint32_t type : {0u, 4u, 8u, 12u}) {
      const std::string array = GgufBytes().put(type).put(count).put_raw("abcdefgh").str();
      EXPECT_THAT(opening(GgufWriter().raw_value("k", 9, array)),
                  HasSubstr("the array length of key 'k'"));
    }
  }
}

TEST(GgufFile, RefusesBadValues) {
  EXPECT_THAT(opening(GgufWriter().raw_value("k", 13, "12345678")), HasSubstr("value type 13"));
  EXPECT_THAT(opening(GgufWriter().raw_value("k", 7, "\x02")), HasSubstr("should be a boolean"));
  const std::string nested = GgufBytes().put(9u).put(uint64_t{0}).str();
  EXPECT_THAT(opening(GgufWriter().raw_value("k", 9, nested)), HasSubstr("array of arrays"));
  const std::string unknown = GgufBytes().put(77u).put(uint64_t{0}).str();
  EXPECT_THAT(opening(GgufWriter().raw_value("k", 9, unknown)), HasSubstr("unknown value type 77"));
  EXPECT_THAT(opening(GgufWriter().raw_value("k", 10, std::string(8, '\xff'))),
              HasSubstr("63 bits"));
  EXPECT_THAT(opening(GgufWriter().integer("k", 1).number("k", 2)),
              HasSubstr("'k' stands there twice"));
  for (const uint32_t alignment : {0u, 3u, 48u}) {
    EXPECT_THAT(opening(GgufWriter().integer("general.alignment", alignment)),
                HasSubstr("power of two"));
  }
  EXPECT_THAT(opening(GgufWriter().text("general.alignment", "32")),
              HasSubstr("expected an integer"));
}

TEST(GgufFile, RefusesBadTensors) {
  const auto with = [](uint32_t type, std::initializer_list<uint64_t> ne, uint64_t offset) {
    GgufWriter writer;
    writer.raw_tensor("w", type, ne, offset).data(std::string(256, '\0'));
    return opening(writer);
  };
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(with(0, {64}, 0), "");
  EXPECT_EQ(with(0, {32}, 128), "");
  EXPECT_THAT(with(0, {}, 0), HasSubstr("0 dimensions"));
  EXPECT_THAT(with(0, {1, 1, 1, 1, 1}, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(with(0, {0}, 0), HasSubstr("impossible size 0 in dimension 0"));
  EXPECT_THAT(with(0, {4, kHuge}, 0), HasSubstr("impossible size"));
  EXPECT_THAT(with(0, {uint64_t{1} << 32, uint64_t{1} << 32}, 0), HasSubstr("impossible size"));
  EXPECT_THAT(with(0, {uint64_t{1} << 31, uint64_t{1} << 31}, 0),
              HasSubstr("larger than the file"));
  EXPECT_THAT(with(9, {32}, 0), AllOf(HasSubstr("'w'"), HasSubstr("type number 9")));
  EXPECT_THAT(with(2, {48}, 0), HasSubstr("not a multiple of Q4_0's blocks of 32"));
  EXPECT_THAT(with(0, {8}, 4), HasSubstr("not a multiple of the alignment 32"));
  EXPECT_THAT(with(0, {65}, 0), HasSubstr("past the end of the file"));
  EXPECT_THAT(with(0, {33}, 128), HasSubstr("past the end of the file"));
  EXPECT_THAT(with(0, {8}, kHuge - 31), HasSubstr("past the end of the file"));

  GgufWriter twice;
  twice.tensor_f32("w", {1}, {1}).tensor_f32("w", {1}, {1});
  EXPECT_THAT(opening(twice), HasSubstr("tensor 'w' stands there twice"));
  GgufWriter overlap;
  overlap.tensor_f32("a", {16}, std::vector<float>(16)).raw_tensor("b", 0, {4}, 32);
  EXPECT_THAT(opening(overlap), HasSubstr("tensors 'a' and 'b' overlap"));
}

TEST(GgufFile, ShowsNamesSafely) {
  GgufWriter writer;
  writer.raw_tensor("\x1b[31m" + std::string(500, 'x'), 9, {32}, 0);
  const std::string message = opening(writer);
  EXPECT_THAT(message, AllOf(HasSubstr("\\x1b[31mxxx"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(message.size(), 300u);
}

TEST(GgufFile, SurvivesTruncationAtEveryByte) {
  const std::string whole = small_file();
  const TempFile temp(whole);
  use(GgufFile(temp.path()));
  for (size_t size = 0; size < whole.size(); ++size) {
    temp.write(std::string_view(whole).substr(0, size));
    EXPECT_THROW(GgufFile(temp.path()), RuntimeError) << size;
  }
}

// Flipped, overwritten and inserted bytes: a file opens and can be used, or says why not.
TEST(GgufFile, SurvivesMutation) {
  const std::string whole = small_file();
  const TempFile temp(whole);
  std::mt19937 random(20240229);
  const auto below = [&](size_t n) { return random() % n; };
  int opened = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = whole;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 1:
          bytes[at] = static_cast<char>(random());
          break;
        case 2:
          bytes[at] = static_cast<char>(below(2) ? 0xff : 0x00);
          break;
        case 3:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
      }
    }
    temp.write(bytes);
    try {
      use(GgufFile(temp.path()));
      ++opened;
    } catch (const RuntimeError&) {
      ++refused;
    }
  }
  EXPECT_GT(opened, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace kvmark
