// GGUF, the model file format of llama.cpp, versions 2 and 3, little-endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace kvmark {

// Tensor types by their number in the file.
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  int64_t cols = 0;                  // ne[0], the contiguous dimension
  int64_t rows = 0;                  // product of the others
  std::span<const std::byte> bytes;  // into the mapped file, length checked
};

using GgufArray = std::variant<std::vector<std::string>, std::vector<int64_t>, std::vector<double>>;
using GgufValue = std::variant<int64_t, double, bool, std::string, GgufArray>;

// A mapped file whose header was read and checked: every offset, length and count lies within the
// file, so that nothing that follows can read outside it. (The file must not be cut while it is in
// use; memory taken by the header is bounded by a small multiple of the file's size.)
class GgufFile {
 public:
  // Throws RuntimeError that names the file, what is wrong with it and at which byte. A tensor of a
  // type that is not in GgufType, nested arrays, duplicate names and overlapping tensors are
  // refused. Arrays of booleans read as integers.
  explicit GgufFile(const std::string& path);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::string& path() const { return path_; }
  // Null when the key or tensor is not there.
  const GgufValue* find(std::string_view key) const;
  const GgufTensor* tensor(std::string_view name) const;
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // Typed look-ups; throw RuntimeError naming file and key when missing or of another type.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;  // integer or float
  const std::string& text(std::string_view key) const;
  const std::vector<std::string>& strings(std::string_view key) const;
  const std::vector<int64_t>& integers(std::string_view key) const;

 private:
  struct Unmap {
    size_t size;
    void operator()(void* address) const;
  };

  using Mapping = std::unique_ptr<void, Unmap>;

  static Mapping map_file(const std::string& path);
  void read_header();
  [[noreturn]] void fail_type(std::string_view key, const GgufValue& value,
                              std::string_view expected) const;
  const GgufValue& require(std::string_view key) const;

  std::string path_;
  Mapping map_;
  std::unordered_map<std::string, GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
};

std::string_view gguf_type_name(GgufType type);

// A name from a file as error messages show it: shortened, and without bytes that would upset a
// terminal.
std::string printable_name(std::string_view name);

// Decodes row `row` of a tensor into `out` (cols floats). A row outside the tensor throws
// LogicError.
void decode_gguf_row(const GgufTensor& tensor, int64_t row, float* out);

}  // namespace kvmark
