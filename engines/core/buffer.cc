#include "engines/core/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

void unmap(std::byte* from, std::byte* to) {
  if (from != to) munmap(from, static_cast<size_t>(to - from));
}

}  // namespace

Buffer::Buffer(size_t bytes) {
  if (bytes == 0) return;
  const size_t align = bytes >= kHugePage ? kHugePage : kPage;
  const size_t mapped = round_up(bytes, kPage);
  // mmap promises page alignment only: take one unit more and give the ends back.
  const size_t reserved = align > kPage ? mapped + align : mapped;
  void* memory = MAP_FAILED;
  if (mapped >= bytes && reserved >= mapped) {
    memory = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  } else {
    errno = ENOMEM;  // the rounding overflowed
  }
  if (memory == MAP_FAILED) {
    throw RuntimeError(
        fmt::format("cannot reserve {} bytes of memory: {}; use a smaller context, "
                    "batch or model",
                    bytes, std::strerror(errno)));
  }
  auto* start = static_cast<std::byte*>(memory);
  data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(start), align));
  size_ = bytes;
  unmap(start, data_);
  unmap(data_ + mapped, start + reserved);
}

Buffer::~Buffer() {
  if (data_) munmap(data_, round_up(size_, kPage));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

bool Buffer::advise_huge_pages() {
  return data_ && madvise(data_, round_up(size_, kPage), MADV_HUGEPAGE) == 0;
}

}  // namespace kvmark
