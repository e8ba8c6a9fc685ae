#include "engines/core/buffer.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(Buffer, IsAlignedZeroedAndWritableToItsEnd) {
  for (size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, (size_t{2} << 20) - 1,
                       size_t{2} << 20, (size_t{5} << 20) + 3}) {
    Buffer buffer(bytes);
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    EXPECT_EQ(address % (bytes >= (size_t{2} << 20) ? size_t{2} << 20 : 4096), 0u) << bytes;
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(buffer.data()[0], std::byte{0});
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
    buffer.data()[0] = buffer.data()[bytes - 1] = std::byte{7};
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{7});
  }
}

TEST(Buffer, MovesItsMemory) {
  Buffer a(100);
  std::byte* memory = a.data();
  Buffer b(std::move(a));
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
  Buffer c(10);
  c = std::move(b);
  EXPECT_EQ(c.data(), memory);
  EXPECT_EQ(c.size(), 100u);
}

TEST(Buffer, NothingNeedsNothing) {
  Buffer buffer(0);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_FALSE(buffer.advise_huge_pages());
}

TEST(Buffer, ReservingDoesNotTouchPages) {
  // More than a test may take: only address space is. (Under a race detector there is 1 TiB of it.)
  Buffer buffer(size_t{1} << 39);
  buffer.data()[size_t{1} << 38] = std::byte{1};
  EXPECT_EQ(buffer.data()[size_t{1} << 38], std::byte{1});
}

TEST(Buffer, SaysWhatItCouldNotHave) {
  for (size_t bytes : {std::numeric_limits<size_t>::max(), size_t{1} << 62}) {
    try {
      Buffer buffer(bytes);
      FAIL() << bytes;
    } catch (const RuntimeError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kvmark
