#include "bench/plan/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxDepth = 16;

std::string place(const std::string& path, int line, int column) {
  return fmt::format("{}:{}:{}", path, line, column);
}

// The place of the byte at `offset`, lines and columns from 1.
std::string place_of(const std::string& path, const std::string& text, size_t offset) {
  const std::string_view before = std::string_view(text).substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
  return place(path, static_cast<int>(line), static_cast<int>(column));
}

// Builds the tree from the parser's events: unlike YAML::Node they show aliases, tags and quotes.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& path) : path_(path) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    fail_at(where(mark),
            fmt::format("anchors (`&{}`) are not used in plans; write the values out", name));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail_at(where(mark), "aliases (`*name`) are not used in plans; write the values out");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (awaits_key()) fail_at(where(mark), "a key is missing here");
    add(make(Node::Kind::null, mark, "", anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::scalar, mark, tag, anchor);
    node.text = value;
    node.quoted = tag == "!";
    if (awaits_key()) {
      open_key(std::move(node));
    } else {
      add(std::move(node));
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    push(make(Node::Kind::list, mark, tag, anchor));
  }
  void OnSequenceEnd() override { pop(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    push(make(Node::Kind::map, mark, tag, anchor));
  }
  void OnMapEnd() override { pop(); }

 private:
  struct Open {
    Node node;
    bool has_key = false;
    Key key;
  };

  std::string where(const YAML::Mark& mark) const {
    return place(path_, mark.line + 1, mark.column + 1);
  }

  // The parser marks plain scalars with "?" and quoted ones with "!"; anything else was written.
  Node make(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (anchor != 0)
      fail_at(where(mark), "anchors (`&name`) are not used in plans; write the values out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail_at(where(mark), fmt::format("tags (`{}`) are not used in plans", tag));
    }
    Node node;
    node.kind = kind;
    node.where = where(mark);
    return node;
  }

  bool awaits_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().has_key;
  }

  void open_key(Node node) {
    Open& map = open_.back();
    for (const Node& field : map.node.fields) {
      if (field.key.name == node.text) {
        fail_at(node.where,
                fmt::format("the key `{}` stands here a second time; the first is at {}", node.text,
                            field.key.where));
      }
    }
    map.key = {node.text, node.where};
    map.has_key = true;
  }

  void push(Node node) {
    if (awaits_key()) fail_at(node.where, "a list or map cannot be a key");
    if (open_.size() == kMaxDepth) {
      fail_at(node.where, fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    open_.push_back({std::move(node), false, {}});
  }

  void pop() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == Node::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else {
      node.key = std::move(parent.key);
      parent.node.fields.push_back(std::move(node));
      parent.has_key = false;
    }
  }

  const std::string& path_;
  Node root_;
  std::vector<Open> open_;
};

// Length of the UTF-8 sequence at `offset`, 0 where there is none (RFC 3629: no overlong forms, no
// surrogates, nothing past U+10FFFF).
size_t utf8_length(const std::string& text, size_t offset) {
  const auto byte = [&](size_t i) -> unsigned {
    return offset + i < text.size() ? static_cast<unsigned char>(text[offset + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return length;
}

void check_characters(const std::string& path, const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      fail_at(place_of(path, text, i),
              fmt::format("byte 0x{:02X} is not UTF-8; save the file as UTF-8 text", byte));
    }
    if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F) {
      fail_at(place_of(path, text, i),
              fmt::format("control character 0x{:02X}; a plan is a text file", byte));
    }
    i += length;
  }
}

void check_indentation(const std::string& path, const std::string& text) {
  bool leading = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (leading && text[i] == '\t') {
      fail_at(place_of(path, text, i), "a tab; YAML is indented with spaces");
    }
    leading = text[i] == '\n' || (leading && text[i] == ' ');
  }
}

// yaml-cpp accepts much that is not JSON, so the syntax is checked first.
void check_json(const std::string& path, const std::string& text) {
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    const std::string what = e.what();
    const size_t detail = what.rfind(": ");
    const size_t offset = std::min(text.size(), e.byte == 0 ? 0 : e.byte - 1);
    fail_at(place_of(path, text, offset),
            "not valid JSON: " + (detail == std::string::npos ? what : what.substr(detail + 2)));
  } catch (const nlohmann::json::out_of_range& e) {
    // "… number overflow parsing '1e400'": the number, but not where it stands.
    const std::string what = e.what();
    const size_t end = what.rfind('\''), begin = what.rfind('\'', end - 1) + 1;
    const std::string number = what.substr(begin, end - begin);
    fail_at(place_of(path, text, std::min(text.find(number), text.size())),
            fmt::format("{} is larger than any number that can be read", number));
  }
}

std::string read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw UsageError(fmt::format("{}: is a folder; expected a YAML or JSON file", path));
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) {
    throw UsageError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) {
    throw UsageError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  if (text.size() > kMaxFileBytes) {
    throw UsageError(fmt::format("{}: larger than {} bytes; this is no plan", path, kMaxFileBytes));
  }
  return text;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Node parse_checked(const std::string& text, const std::string& path) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  TreeBuilder first(path), second(path);
  if (!parser.HandleNextDocument(first)) fail_at(place(path, 1, 1), "the file is empty");
  if (parser.HandleNextDocument(second)) {
    fail_at(second.take().where, "a second document; a file holds one plan");
  }
  Node root = first.take();
  if (root.kind != Node::Kind::map) {
    fail_at(root.where, "expected keys and values at the top, such as `name: my-plan`");
  }
  return root;
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  for (const Node& field : fields) {
    if (field.key.name == name) return &field;
  }
  return nullptr;
}

Node* Node::find(std::string_view name) {
  return const_cast<Node*>(std::as_const(*this).find(name));
}

void Node::set(std::string_view name, Node value) {
  value.key = {std::string(name), value.where};
  if (Node* old = find(name)) {
    *old = std::move(value);
  } else {
    fields.push_back(std::move(value));
  }
}

void Node::erase(std::string_view name) {
  fields.erase(std::remove_if(fields.begin(), fields.end(),
                              [&](const Node& field) { return field.key.name == name; }),
               fields.end());
}

bool is_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void fail_at(const std::string& where, const std::string& text) {
  throw UsageError(where + ": " + text);
}

Node parse_document(const std::string& source, const std::string& path) {
  std::string text = source.rfind("\xEF\xBB\xBF", 0) == 0 ? source.substr(3) : source;
  check_characters(path, text);
  if (ends_with(path, ".json")) {
    check_json(path, text);
    std::replace(text.begin(), text.end(), '\t',
                 ' ');  // white space only: strings cannot hold tabs
  } else {
    check_indentation(path, text);
  }
  try {
    return parse_checked(text, path);
  } catch (const YAML::Exception& e) {
    const bool placed = !e.mark.is_null();
    fail_at(place(path, placed ? e.mark.line + 1 : 1, placed ? e.mark.column + 1 : 1), e.msg);
  }
}

Node read_document(const std::string& path) { return parse_document(read_file(path), path); }

}  // namespace kvmark
