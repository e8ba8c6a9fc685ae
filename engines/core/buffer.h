// Owned memory for pools, weights and activations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvmark {

// Zeroed memory straight from the operating system. The address space is there at once, pages are
// taken when they are first touched: a pool can reserve its maximum and pay by use. Starts on a
// page of 4 KiB, from 2 MiB on at a huge page. Move-only.
class Buffer {
 public:
  Buffer() = default;
  // Throws RuntimeError when the address space cannot be had. 0 bytes give a null buffer.
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The memory as objects of T; the memory is zero until it is written.
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

  // Asks for transparent huge pages. A hint: false where the system does not know it.
  bool advise_huge_pages();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kvmark
