#include "bench/plan/document.h"

#include <gmock/gmock.h>

#include "bench/plan/test_files.h"

namespace kvmark {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text, const std::string& path = "p.yaml") {
  try {
    parse_document(text, path);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no error";
}

std::string read_error(const std::string& path) {
  try {
    read_document(path);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Document, EveryPartKnowsItsPlace) {
  const Node root = parse_document("name: x\nworkload:\n  gen_len: [1, \"2\"]\n", "p.yaml");
  const Node* workload = root.find("workload");
  ASSERT_NE(workload, nullptr);
  EXPECT_EQ(workload->kind, Node::Kind::map);
  EXPECT_EQ(workload->fields[0].key.where, "p.yaml:3:3");
  const Node* list = workload->find("gen_len");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[1].where, "p.yaml:3:16");
  EXPECT_EQ(list->items[1].text, "2");
  EXPECT_TRUE(list->items[1].quoted);
  EXPECT_FALSE(list->items[0].quoted);
}

TEST(Document, JsonIsReadWithPlacesToo) {
  const Node root = parse_document("{\n\t\"a\": {\"b\":[1,\n true]}}\n", "p.json");
  const Node* list = root.find("a")->find("b");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->items[1].where, "p.json:3:2");
  EXPECT_EQ(list->items[1].text, "true");
}

TEST(Document, ByteOrderMarkAndWindowsLineEndsAreFine) {
  const Node root = parse_document("\xEF\xBB\xBFname: x\r\ngen: 1\r\n", "p.yaml");
  EXPECT_EQ(root.find("name")->text, "x");
  EXPECT_EQ(root.find("gen")->text, "1");
}

TEST(Document, DuplicateKeys) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"),
            "p.yaml:3:1: the key `a` stands here a second time; the first is at p.yaml:1:1");
  EXPECT_THAT(error_of("x: {a: 1, a: 2}\n"), StartsWith("p.yaml:1:11: the key `a` stands here"));
  EXPECT_THAT(error_of("{\"a\": 1,\n \"a\": 2}", "p.json"), StartsWith("p.json:2:2: the key `a`"));
}

TEST(Document, AliasesAnchorsMergesAndTags) {
  EXPECT_THAT(error_of("a: &x 1\nb: *x\n"), HasSubstr("p.yaml:1:4: anchors"));
  // A bomb is refused at its first anchor, before anything is multiplied.
  EXPECT_THAT(error_of("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"), HasSubstr("1:4: anchors"));
  EXPECT_THAT(error_of("base: &base {a: 1}\nx:\n  <<: *base\n"), HasSubstr("anchors"));
  EXPECT_THAT(error_of("a: !!int 3\n"), HasSubstr("p.yaml:1:4: tags (`tag:yaml.org,2002:int`)"));
}

TEST(Document, Tabs) {
  EXPECT_EQ(error_of("workload:\n\tgen_len: 1\n"),
            "p.yaml:2:1: a tab; YAML is indented with spaces");
  EXPECT_EQ(error_of("workload:\n \tgen_len: 1\n"),
            "p.yaml:2:2: a tab; YAML is indented with spaces");
}

TEST(Document, BytesThatAreNoText) {
  EXPECT_EQ(error_of("a: 1\nb: \xC3\x28\n"),
            "p.yaml:2:4: byte 0xC3 is not UTF-8; save the file as UTF-8 text");
  EXPECT_THAT(error_of("a: \xC0\xAF\n"), HasSubstr("0xC0 is not UTF-8"));      // overlong
  EXPECT_THAT(error_of("a: \xED\xA0\x80\n"), HasSubstr("0xED is not UTF-8"));  // surrogate
  EXPECT_THAT(error_of("a: \xF5\x80\x80\x80\n"), HasSubstr("0xF5 is not UTF-8"));
  EXPECT_THAT(error_of("a: \xE2\x82"), HasSubstr("0xE2 is not UTF-8"));  // cut off
  EXPECT_THAT(error_of(std::string("a: 1\0b", 6)), HasSubstr("p.yaml:1:5: control character 0x00"));
  EXPECT_EQ(error_of("name: größe\n"), "no error");
  EXPECT_EQ(error_of("name: \xF0\x9F\x98\x80\n"), "no error");
}

TEST(Document, ANumberThatOverflowsHasItsPlace) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"b\": -1e400}", "p.json"),
            "p.json:2:7: -1e400 is larger than any number that can be read");
}

TEST(Document, Syntax) {
  EXPECT_THAT(error_of("a: [1, 2\n"), StartsWith("p.yaml:2:1: "));
  EXPECT_THAT(error_of("a: 1\n b: 2\n"), StartsWith("p.yaml:2:3: "));
  EXPECT_EQ(error_of(""), "p.yaml:1:1: the file is empty");
  EXPECT_EQ(error_of("# only a comment\n"), "p.yaml:1:1: the file is empty");
  EXPECT_THAT(error_of("- a\n- b\n"),
              StartsWith("p.yaml:1:1: expected keys and values at the top"));
  EXPECT_THAT(error_of("just words\n"), HasSubstr("expected keys and values at the top"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("a file holds one plan"));
  EXPECT_THAT(error_of("[a, b]: 1\n"), StartsWith("p.yaml:1:1: a list or map cannot be a key"));
}

TEST(Document, DeepNestingIsRefusedBeforeTheStackIs) {
  EXPECT_EQ(error_of("a: " + std::string(20, '[') + std::string(20, ']') + "\n"),
            "p.yaml:1:19: nested deeper than 16 levels");
  EXPECT_NE(error_of("a: " + std::string(100000, '[')), "no error");
  std::string dashes;
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  EXPECT_THAT(error_of(dashes), HasSubstr("nested deeper than 16 levels"));
}

TEST(Document, JsonMustBeJson) {
  EXPECT_THAT(error_of("{\"a\": 1,}", "p.json"), StartsWith("p.json:1:9: not valid JSON: "));
  EXPECT_THAT(error_of("{\n  a: 1\n}", "p.json"), StartsWith("p.json:2:3: not valid JSON: "));
  EXPECT_THAT(error_of("{\"a\": 010}", "p.json"), StartsWith("p.json:1:9: not valid JSON: "));
  EXPECT_THAT(error_of("{\"a\": NaN}", "p.json"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("# YAML\na: 1\n", "p.json"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("", "p.json"), StartsWith("p.json:1:1: not valid JSON"));
}

TEST(Document, Files) {
  const TempFolder folder;
  EXPECT_EQ(read_error(folder.path("none.yaml")),
            folder.path("none.yaml") + ": cannot be read: No such file or directory");
  std::filesystem::create_directories(folder.path("dir.yaml"));
  EXPECT_EQ(read_error(folder.path("dir.yaml")),
            folder.path("dir.yaml") + ": is a folder; expected a YAML or JSON file");
  EXPECT_THAT(read_error(folder.write("big.yaml", std::string((1 << 20) + 1, '#'))),
              HasSubstr("larger than 1048576 bytes"));
  EXPECT_THAT(read_error("/dev/zero"), HasSubstr("larger than 1048576 bytes"));
}

}  // namespace
}  // namespace kvmark
