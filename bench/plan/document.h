// YAML and JSON files as a tree whose every part knows where it stands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

// A key of a map and its place.
struct Key {
  std::string name;
  std::string where;
};

struct Node {
  enum class Kind { null, scalar, list, map } kind = Kind::null;
  std::string where;         // "plan.yaml:3:7", or the flag that gave it
  bool flag = false;         // given on the command line
  std::string text;          // scalar: as written, quotes and escapes resolved
  bool quoted = false;       // scalar: was in quotes, so it is a string
  Key key;                   // its own, where it stands in a map
  std::vector<Node> items;   // list
  std::vector<Node> fields;  // map, in order, keys unique

  // The value of a map's key, null where there is none.
  const Node* find(std::string_view name) const;
  Node* find(std::string_view name);
  // Adds or replaces.
  void set(std::string_view name, Node value);
  void erase(std::string_view name);
};

// Throws UsageError "WHERE: text".
[[noreturn]] void fail_at(const std::string& where, const std::string& text);

// Whether all of `text` is UTF-8 (RFC 3629).
bool is_utf8(const std::string& text);

// Reads a YAML file, or a JSON file where the name ends in `.json`. Throws UsageError with
// file:line:column for everything that is not plain data: syntax, duplicate keys, aliases and
// anchors, tags, several documents, tabs as indentation, bytes that are not UTF-8. The top is a
// map.
Node read_document(const std::string& path);

// The same of a text; `path` names it in errors.
Node parse_document(const std::string& text, const std::string& path);

}  // namespace kvmark
