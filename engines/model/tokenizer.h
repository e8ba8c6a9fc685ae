// Byte-level BPE (Radford et al., 2019), with the vocabulary and merges of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

class GgufFile;

class Tokenizer {
 public:
  // Reads tokenizer.ggml.{model=gpt2, pre, tokens, merges, token_type, add_bos_token,
  // bos/eos/unknown ids}; a file without `pre` is read as "default". Throws RuntimeError naming the
  // file when it has no such tokenizer, a damaged one or an unknown pre-tokenizer. Keeps nothing of
  // `file`.
  explicit Tokenizer(const GgufFile& file);
  ~Tokenizer();

  // UTF-8 → tokens, after the file's beginning-of-text token where it asks for one; special tokens
  // in `text` (such as <|im_start|>) are taken as such where `special` is set. Invalid UTF-8 is
  // tokenized byte by byte. A byte that the vocabulary lacks becomes the file's unknown token, or
  // throws RuntimeError where it has none.
  std::vector<int32_t> encode(std::string_view text, bool special = false) const;
  // The bytes of the tokens, special ones as their names; ids outside the vocabulary throw
  // LogicError.
  std::string decode(const std::vector<int32_t>& tokens) const;
  int32_t eos() const;  // −1: none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvmark
