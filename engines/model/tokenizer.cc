#include "engines/model/tokenizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

#include "engines/core/check.h"
#include "engines/model/gguf.h"
#include "engines/model/pre_tokenizer.h"
#include "engines/model/unicode.h"

namespace kvmark {
namespace {

constexpr int32_t kNone = -1;
// Values of tokenizer.ggml.token_type for tokens that stand in text as a whole.
constexpr int64_t kControl = 3, kUserDefined = 4;

// Vocabularies spell bytes as printable characters: a visible Latin-1 byte stands for itself, the
// others follow in order from U+0100 (Radford et al., 2019).
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> characters = {};
  char32_t next = 0x100;
  for (char32_t b = 0; b < 256; ++b) {
    const bool visible = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
    characters[b] = visible ? b : next++;
  }
  return characters;
}

// A token's text in the vocabulary → its bytes. What spells no byte is kept as it stands.
class ByteSpelling {
 public:
  ByteSpelling() {
    const auto characters = byte_characters();
    for (int b = 0; b < 256; ++b) byte_of_.emplace(characters[b], static_cast<char>(b));
  }

  std::string bytes(std::string_view spelled) const {
    std::string out;
    for (size_t at = 0; at < spelled.size();) {
      const CodePoint point = code_point_at(spelled, at);
      const auto it = byte_of_.find(point.code);
      out += it != byte_of_.end() ? std::string(1, it->second)
                                  : std::string(spelled.substr(at, point.bytes));
      at += point.bytes;
    }
    return out;
  }

 private:
  std::unordered_map<char32_t, char> byte_of_;
};

struct Merge {
  int32_t rank;
  int32_t result;
};

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

using Merges = std::unordered_map<uint64_t, Merge>;

// Applies merges to a word's symbols, always the one of lowest rank, the leftmost first. A heap and
// links between the living symbols keep that at O(n log n) for words of any length.
class MergeQueue {
 public:
  MergeQueue(const Merges& merges, std::vector<int32_t> symbols)
      : merges_(merges), symbols_(std::move(symbols)) {
    const int n = static_cast<int>(symbols_.size());
    for (int i = 0; i < n; ++i) links_.push_back({i - 1, i + 1 < n ? i + 1 : kNone});
    for (int i = 0; i + 1 < n; ++i) offer(i);
  }

  void merge_into(std::vector<int32_t>& tokens) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (still_stands(best)) apply(best);
    }
    for (int i = symbols_.empty() ? kNone : 0; i != kNone; i = links_[i].next) {
      tokens.push_back(symbols_[i]);
    }
  }

 private:
  struct Link {
    int previous, next;
  };
  struct Candidate {
    int32_t rank;
    int at;  // index of the left symbol
    int32_t left, right, result;
    bool operator<(const Candidate& other) const {  // the queue's top is the largest
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void offer(int at) {
    if (at == kNone || links_[at].next == kNone) return;
    const int32_t left = symbols_[at], right = symbols_[links_[at].next];
    const auto it = merges_.find(pair_key(left, right));
    if (it != merges_.end()) queue_.push({it->second.rank, at, left, right, it->second.result});
  }

  // Symbols may have been merged since the candidate was offered; those that died are kNone.
  bool still_stands(const Candidate& c) const {
    const int next = links_[c.at].next;
    return symbols_[c.at] == c.left && next != kNone && symbols_[next] == c.right;
  }

  void apply(const Candidate& c) {
    const int right = links_[c.at].next, after = links_[right].next;
    symbols_[c.at] = c.result;
    symbols_[right] = kNone;
    links_[c.at].next = after;
    if (after != kNone) links_[after].previous = c.at;
    offer(links_[c.at].previous);
    offer(c.at);
  }

  const Merges& merges_;
  std::vector<int32_t> symbols_;
  std::vector<Link> links_;
  std::priority_queue<Candidate> queue_;
};

// A token that is matched in the text before it is cut into words.
struct WholeToken {
  std::string text;
  int32_t id;
  bool control;  // matched only on request
};

}  // namespace

struct Tokenizer::Impl {
  std::string path;
  PreTokenizer pre = PreTokenizer::gpt2;
  std::vector<std::string> bytes;  // of each token
  std::array<int32_t, 256> byte_tokens = {};
  Merges merges;
  std::vector<WholeToken> wholes;                  // the longest first
  std::unordered_map<std::string, int32_t> words;  // llama3 takes a word of the vocabulary unmerged
  int32_t bos = kNone, eos = kNone, unknown = kNone;
  bool add_bos = false;

  explicit Impl(const GgufFile& file);
  void read_vocabulary(const GgufFile& file, const std::vector<std::string>& tokens,
                       const ByteSpelling& spelling);
  void read_merges(const GgufFile& file,
                   const std::unordered_map<std::string_view, int32_t>& id_of);
  int32_t token_id(const GgufFile& file, std::string_view key) const;

  [[noreturn]] void fail(std::string_view what) const {
    throw RuntimeError(fmt::format("{}: {}", path, what));
  }

  const WholeToken* whole_at(std::string_view text, bool special) const;
  void encode_plain(std::string_view text, std::vector<int32_t>& tokens) const;
  void encode_word(std::string_view word, std::vector<int32_t>& tokens) const;
};

Tokenizer::Impl::Impl(const GgufFile& file) : path(file.path()) {
  const std::string& model = file.text("tokenizer.ggml.model");
  if (model != "gpt2") {
    fail(fmt::format("its tokenizer is of the kind '{}'; kvmark reads byte-level BPE ('gpt2')",
                     printable_name(model)));
  }
  const bool has_pre = file.find("tokenizer.ggml.pre") != nullptr;
  const std::string name = has_pre ? file.text("tokenizer.ggml.pre") : "default";
  const std::optional<PreTokenizer> kind = find_pre_tokenizer(name);
  if (!kind) {
    fail(fmt::format("unknown pre-tokenizer '{}'; known: {}", printable_name(name),
                     fmt::join(pre_tokenizer_names(), ", ")));
  }
  pre = *kind;

  const std::vector<std::string>& tokens = file.strings("tokenizer.ggml.tokens");
  if (tokens.empty() || tokens.size() > std::numeric_limits<int32_t>::max()) {
    fail(fmt::format("a vocabulary of {} tokens is impossible", tokens.size()));
  }
  std::unordered_map<std::string_view, int32_t> id_of;
  for (size_t i = 0; i < tokens.size(); ++i) id_of.emplace(tokens[i], static_cast<int32_t>(i));
  read_vocabulary(file, tokens, ByteSpelling());
  read_merges(file, id_of);

  bos = token_id(file, "tokenizer.ggml.bos_token_id");
  eos = token_id(file, "tokenizer.ggml.eos_token_id");
  unknown = token_id(file, "tokenizer.ggml.unknown_token_id");
  const GgufValue* wants_bos = file.find("tokenizer.ggml.add_bos_token");
  const bool* flag = wants_bos ? std::get_if<bool>(wants_bos) : nullptr;
  add_bos = flag != nullptr && *flag && bos != kNone;
}

void Tokenizer::Impl::read_vocabulary(const GgufFile& file, const std::vector<std::string>& tokens,
                                      const ByteSpelling& spelling) {
  const bool typed = file.find("tokenizer.ggml.token_type") != nullptr;
  const std::vector<int64_t> types =
      typed ? file.integers("tokenizer.ggml.token_type") : std::vector<int64_t>(tokens.size(), 1);
  if (types.size() != tokens.size()) {
    fail(fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens", types.size(),
                     tokens.size()));
  }
  byte_tokens.fill(kNone);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (types[i] == kControl || types[i] == kUserDefined) {
      bytes.push_back(tokens[i]);
      if (!tokens[i].empty()) wholes.push_back({tokens[i], id, types[i] == kControl});
      continue;
    }
    bytes.push_back(spelling.bytes(tokens[i]));
    if (bytes.back().size() == 1) byte_tokens[static_cast<unsigned char>(bytes.back()[0])] = id;
    if (pre == PreTokenizer::llama3) words.emplace(bytes.back(), id);
  }
  std::stable_sort(wholes.begin(), wholes.end(), [](const WholeToken& a, const WholeToken& b) {
    return a.text.size() > b.text.size();
  });
}

// "left right" in order of rank; both and their concatenation are tokens.
void Tokenizer::Impl::read_merges(const GgufFile& file,
                                  const std::unordered_map<std::string_view, int32_t>& id_of) {
  const std::vector<std::string>& lines = file.strings("tokenizer.ggml.merges");
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const size_t space = line.find(' ', 1);
    const std::string_view left = std::string_view(line).substr(0, space);
    const std::string_view right =
        space < line.size() ? std::string_view(line).substr(space + 1) : std::string_view();
    const std::string joined = std::string(left).append(right);
    const auto a = id_of.find(left), b = id_of.find(right), result = id_of.find(joined);
    if (right.empty() || a == id_of.end() || b == id_of.end() || result == id_of.end()) {
      fail(fmt::format("merge {} ('{}') is not made of two tokens that join to a third", i,
                       printable_name(line)));
    }
    merges.emplace(pair_key(a->second, b->second), Merge{static_cast<int32_t>(i), result->second});
  }
}

int32_t Tokenizer::Impl::token_id(const GgufFile& file, std::string_view key) const {
  if (file.find(key) == nullptr) return kNone;
  const int64_t id = file.integer(key);
  if (id < 0 || id >= static_cast<int64_t>(bytes.size())) {
    fail(fmt::format("{} is {}, outside the vocabulary of {} tokens", key, id, bytes.size()));
  }
  return static_cast<int32_t>(id);
}

const WholeToken* Tokenizer::Impl::whole_at(std::string_view text, bool special) const {
  for (const WholeToken& whole : wholes) {
    if ((special || !whole.control) && text.substr(0, whole.text.size()) == whole.text) {
      return &whole;
    }
  }
  return nullptr;
}

void Tokenizer::Impl::encode_plain(std::string_view text, std::vector<int32_t>& tokens) const {
  for (const std::string_view word : split_words(pre, text)) encode_word(word, tokens);
}

void Tokenizer::Impl::encode_word(std::string_view word, std::vector<int32_t>& tokens) const {
  if (const auto it = words.find(std::string(word)); it != words.end()) {
    tokens.push_back(it->second);
    return;
  }
  std::vector<int32_t> symbols;
  for (const char c : word) {
    const unsigned char byte = static_cast<unsigned char>(c);
    const int32_t id = byte_tokens[byte] != kNone ? byte_tokens[byte] : unknown;
    if (id == kNone) {
      fail(fmt::format("the vocabulary lacks the byte {:#04x} and has no unknown token", byte));
    }
    symbols.push_back(id);
  }
  MergeQueue(merges, std::move(symbols)).merge_into(tokens);
}

Tokenizer::Tokenizer(const GgufFile& file) : impl_(std::make_unique<Impl>(file)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool special) const {
  std::vector<int32_t> tokens;
  if (impl_->add_bos) tokens.push_back(impl_->bos);
  size_t plain = 0;  // start of what has not been encoded
  for (size_t at = 0; at < text.size();) {
    const WholeToken* whole = impl_->whole_at(text.substr(at), special);
    if (whole == nullptr) {
      ++at;
      continue;
    }
    impl_->encode_plain(text.substr(plain, at - plain), tokens);
    tokens.push_back(whole->id);
    at += whole->text.size();
    plain = at;
  }
  impl_->encode_plain(text.substr(plain), tokens);
  return tokens;
}

std::string Tokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t id : tokens) {
    check(id >= 0 && id < static_cast<int32_t>(impl_->bytes.size()),
          "token {} is outside the vocabulary of {}", id, impl_->bytes.size());
    text += impl_->bytes[static_cast<size_t>(id)];
  }
  return text;
}

int32_t Tokenizer::eos() const { return impl_->eos; }

}  // namespace kvmark
