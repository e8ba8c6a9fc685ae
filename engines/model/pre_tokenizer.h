// Cuts text into the words inside which byte-pair merges may happen. Published tokenizers define
// the cuts as regular expressions over Unicode classes; these are the same languages, written by
// hand.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

enum class PreTokenizer {
  gpt2,    // contractions; runs of letters, numbers or others, each with one space before; spaces
  smollm,  // every number character alone, then gpt2 on what lies between
  llama3,  // as gpt2, but numbers in threes, newlines grouped, any one character before letters
  qwen2,   // as llama3, numbers alone
};

// By the names of `tokenizer.ggml.pre` (gpt-2, default, smollm, llama-bpe, qwen2).
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);
std::vector<std::string> pre_tokenizer_names();

// Views into `text`, in order, that cover it without gaps. A byte that is no valid UTF-8 counts as
// a character that is neither letter, number nor space.
std::vector<std::string_view> split_words(PreTokenizer kind, std::string_view text);

}  // namespace kvmark
