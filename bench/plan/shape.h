// The model of a case: its source, with the plan's changes of shape.
#pragma once

#include <map>
#include <string>

#include "bench/plan/bind.h"
#include "bench/plan/case.h"

namespace kvmark {

// One value of every axis.
using Choice = std::map<std::string, const Value*>;

const Value* find_value(const Choice& choice, const std::string& key);
// Throws UsageError at the value of `key`: "file:line:column: key: text", or "--flag: text".
[[noreturn]] void fail_value(const Value& value, const std::string& key, const std::string& text);

class ModelShapes {
 public:
  // The source and the checked shape of a choice. Files are read once.
  void build(const Choice& choice, Case& c);
  // Tokens that the text of `text` (a path) has with the vocabulary of a model file. Throws
  // UsageError at `text` where either cannot be read.
  int text_tokens(const Value& text, const std::string& model_file);

 private:
  const ModelConfig& base(const std::string& key, const Value& value);

  std::map<std::string, ModelConfig> read_;  // by key and name
  std::map<std::string, int> tokens_;        // of the plan's text, by model file
};

}  // namespace kvmark
