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
  // Reads tokenizer.ggml.{model=gpt2, pre, tokens, merges, token_type, bos/eos ids}. Throws
  // RuntimeError naming the file when it has no such tokenizer or an unknown pre-tokenizer.
  explicit Tokenizer(const GgufFile& file);
  ~Tokenizer();

  // UTF-8 → tokens; special tokens in `text` (such as <|im_start|>) are taken as such where
  // `special` is set. Invalid UTF-8 is tokenized byte by byte.
  std::vector<int32_t> encode(std::string_view text, bool special = false) const;
  // The bytes of the tokens; ids outside the vocabulary throw LogicError.
  std::string decode(const std::vector<int32_t>& tokens) const;
  int32_t eos() const;  // −1: none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvmark
