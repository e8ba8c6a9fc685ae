#include "bench/machine/read_ceiling.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "engines/codecs/simd.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr int kTrials = 3;
constexpr double kSeconds = 1e-3;           // that a measurement lasts at least
constexpr int kPartsPerThread = 4;          // so that a thread that was held up reads less
constexpr int64_t kSmallestPart = 1 << 18;  // bytes that are worth dealing separately
constexpr uint64_t kSeed = 1;               // of the pages' order

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

int64_t whole_lines(int64_t page_bytes) {
  check(page_bytes >= 0, "a read ceiling in pages of {} bytes: expected 0 or more", page_bytes);
  return round_up(page_bytes, kReadLine);
}

int64_t whole_pages(int64_t bytes, int64_t page_bytes) {
  check(bytes >= 1, "a read ceiling of {} bytes: expected at least 1", bytes);
  return round_up(bytes, std::max(page_bytes, kReadLine));
}

std::vector<int32_t> shuffled(int64_t n) {
  check(n <= INT32_MAX, "a read ceiling of {} pages: expected at most {}", n, INT32_MAX);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
  return order;
}

// A different word for each index, so that a sum tells which words are in it.
uint64_t word_at(uint64_t index) {
  uint64_t word = (index + 1) * 0x9e3779b97f4a7c15u;
  word ^= word >> 29;
  return word * 0xbf58476d1ce4e5b9u;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ReadCeiling::ReadCeiling(ThreadPool& pool, int64_t bytes, int64_t page_bytes)
    : pool_(pool),
      page_bytes_(whole_lines(page_bytes)),
      buffer_(whole_pages(bytes, page_bytes_)),
      sums_(pool.threads()) {
  if (page_bytes_ > 0) order_ = shuffled(this->bytes() / page_bytes_);
  const int64_t worthwhile = this->bytes() / kSmallestPart;
  parts_ = static_cast<int>(
      std::clamp<int64_t>(worthwhile, pool.threads(), kPartsPerThread * int64_t{pool.threads()}));
  fill();
  calibrate();
}

void ReadCeiling::fill() {
  buffer_.advise_huge_pages();
  uint64_t* words = buffer_.as<uint64_t>();
  const int64_t n = bytes() / static_cast<int64_t>(sizeof(uint64_t));
  pool_.run(parts_, [&](int part, int) {
    for (int64_t i = n * part / parts_; i < n * (part + 1) / parts_; ++i) words[i] = word_at(i);
  });
}

void ReadCeiling::calibrate() {
  // The first pass is slower than any other: caches are cold, threads sleep.
  read(fastest_, 1);
  const double seconds = static_cast<double>(bytes()) / (gb_per_s(fastest_, 1) * 1e9);
  passes_ = std::max<int64_t>(1, std::llround(std::ceil(kSeconds / seconds)));

  std::array<std::array<double, kTrials>, kVariants.size()> rates;
  for (int trial = 0; trial < kTrials; ++trial) {
    for (size_t v = 0; v < kVariants.size(); ++v) rates[v][trial] = gb_per_s(kVariants[v], passes_);
  }
  std::array<double, kVariants.size()> medians;
  for (size_t v = 0; v < kVariants.size(); ++v) {
    std::sort(rates[v].begin(), rates[v].end());
    medians[v] = rates[v][kTrials / 2];
  }
  fastest_ = kVariants[std::max_element(medians.begin(), medians.end()) - medians.begin()];
}

double ReadCeiling::measure() {
  // What caches hold of small memory was lost to others since the last measurement.
  if (passes_ > 1) read(fastest_, 1);
  return gb_per_s(fastest_, passes_);
}

double ReadCeiling::gb_per_s(ReadVariant variant, int64_t passes) {
  const auto start = std::chrono::steady_clock::now();
  read(variant, passes);
  return static_cast<double>(bytes() * passes) / seconds_since(start) / 1e9;
}

uint64_t ReadCeiling::read(ReadVariant variant, int64_t passes) {
  const ReadKernel kernel = read_kernel(chosen_simd_target(), variant);
  for (Sum& sum : sums_) sum.words = 0;
  pool_.run(static_cast<int>(parts_ * passes), [&](int index, int thread) {
    sums_[thread].words += read_part(kernel, variant.streams, index % parts_);
  });
  uint64_t total = 0;
  for (const Sum& sum : sums_) total += sum.words;
  return total;
}

uint64_t ReadCeiling::read_part(ReadKernel kernel, int streams, int64_t part) const {
  if (page_bytes_ > 0) {
    const int64_t pages = static_cast<int64_t>(order_.size());
    const int64_t first = pages * part / parts_;
    const int64_t end = pages * (part + 1) / parts_;
    return kernel(buffer_.data(), order_.data() + first, end - first, page_bytes_);
  }
  // A run a stream, and the few lines that are left.
  constexpr int32_t kInTurn[] = {0, 1, 2, 3};
  const int64_t lines = bytes() / kReadLine;
  const int64_t first = lines * part / parts_;
  const int64_t count = lines * (part + 1) / parts_ - first;
  const int64_t run = count / streams;
  const int64_t rest = count % streams;
  const std::byte* begin = buffer_.data() + first * kReadLine;
  uint64_t sum = 0;
  if (run > 0) sum += kernel(begin, kInTurn, streams, run * kReadLine);
  if (rest > 0) sum += kernel(begin + run * streams * kReadLine, kInTurn, 1, rest * kReadLine);
  return sum;
}

}  // namespace kvmark
