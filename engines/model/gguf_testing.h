// For tests: writes small GGUF files, sound ones and such as no honest program would write.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engines/core/check.h"
#include "engines/model/gguf.h"

namespace kvmark {

// Little-endian values one after another.
class GgufBytes {
 public:
  template <typename T>
  GgufBytes& put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
    return *this;
  }
  // With its 64-bit length before it.
  GgufBytes& put_text(std::string_view text) {
    put(uint64_t{text.size()});
    return put_raw(text);
  }
  GgufBytes& put_raw(std::string_view raw) {
    bytes_.append(raw);
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

// Collects metadata and tensors; bytes() is the file.
class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  GgufWriter& integer(std::string_view key, uint32_t value) {
    return raw_value(key, 4, GgufBytes().put(value).str());
  }
  GgufWriter& number(std::string_view key, float value) {
    return raw_value(key, 6, GgufBytes().put(value).str());
  }
  GgufWriter& flag(std::string_view key, bool value) {
    return raw_value(key, 7, GgufBytes().put(uint8_t{value}).str());
  }
  GgufWriter& text(std::string_view key, std::string_view value) {
    return raw_value(key, 8, GgufBytes().put_text(value).str());
  }
  GgufWriter& integers(std::string_view key, const std::vector<int32_t>& values) {
    GgufBytes array;
    array.put(uint32_t{5}).put(uint64_t{values.size()});
    for (const int32_t value : values) array.put(value);
    return raw_value(key, 9, array.str());
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    GgufBytes array;
    array.put(uint32_t{8}).put(uint64_t{values.size()});
    for (const std::string& value : values) array.put_text(value);
    return raw_value(key, 9, array.str());
  }
  // `value` as its type's encoding has it, true or false.
  GgufWriter& raw_value(std::string_view key, uint32_t type, std::string_view value) {
    values_.put_text(key).put(type).put_raw(value);
    ++value_count_;
    return *this;
  }

  // ne[0] is the contiguous dimension.
  GgufWriter& tensor(std::string_view name, GgufType type, std::initializer_list<uint64_t> ne,
                     std::string_view bytes) {
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    raw_tensor(name, static_cast<uint32_t>(type), ne, data_.size());
    data_.append(bytes);
    return *this;
  }
  GgufWriter& tensor_f32(std::string_view name, std::initializer_list<uint64_t> ne,
                         const std::vector<float>& values) {
    return tensor(name, GgufType::f32, ne,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  // An entry of the header alone.
  GgufWriter& raw_tensor(std::string_view name, uint32_t type, std::initializer_list<uint64_t> ne,
                         uint64_t offset) {
    tensors_.put_text(name).put(static_cast<uint32_t>(ne.size()));
    for (const uint64_t size : ne) tensors_.put(size);
    tensors_.put(type).put(offset);
    ++tensor_count_;
    return *this;
  }
  GgufWriter& data(std::string_view bytes) {
    data_.append(bytes);
    return *this;
  }
  // Before the first tensor; also writes the key.
  GgufWriter& alignment(uint32_t value) {
    alignment_ = value;
    return integer("general.alignment", value);
  }

  std::string bytes() const {
    GgufBytes file;
    file.put_raw("GGUF").put(version_).put(tensor_count_).put(value_count_);
    file.put_raw(values_.str()).put_raw(tensors_.str());
    std::string out = file.str();
    if (tensor_count_ > 0) out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    return out + data_;
  }

 private:
  uint32_t version_;
  uint64_t alignment_ = 32;
  uint64_t value_count_ = 0, tensor_count_ = 0;
  GgufBytes values_, tensors_;
  std::string data_;
};

// A file with these bytes until the end of the scope. It lives in memory: thousands of them take no
// time, and a crash leaves nothing behind.
class TempFile {
 public:
  explicit TempFile(std::string_view bytes) : fd_(memfd_create("gguf", MFD_CLOEXEC)) {
    if (fd_ < 0) throw RuntimeError("memfd_create failed");
    write(bytes);
  }
  ~TempFile() { close(fd_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  // Replaces the content.
  void write(std::string_view bytes) const {
    const bool cut = ftruncate(fd_, static_cast<off_t>(bytes.size())) == 0;
    if (!cut || pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      throw RuntimeError("cannot write a file in memory");
    }
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

}  // namespace kvmark
