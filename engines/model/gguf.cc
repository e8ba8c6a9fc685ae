#include "engines/model/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

#include "engines/core/check.h"
#include "engines/model/gguf_types.h"

namespace kvmark {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;

// Types of metadata values by their number in the file.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

std::string errno_text() { return std::generic_category().message(errno); }

// A cursor over the header. Nothing is read or allocated before it is known to lie in the file.
class Reader {
 public:
  Reader(const std::string& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t size() const { return file_.size(); }
  uint64_t remaining() const { return size() - position_; }
  std::span<const std::byte> bytes(uint64_t first, uint64_t count) const {
    return file_.subspan(first, count);
  }

  [[noreturn]] void fail(uint64_t at, std::string_view what) const {
    throw RuntimeError(fmt::format("{}: {} (at byte {} of {})", path_, what, at, size()));
  }

  void need(uint64_t count, std::string_view what) const {
    if (count > remaining()) {
      fail(position_, fmt::format("the file ends within {}: {} bytes needed, {} left", what, count,
                                  remaining()));
    }
  }

  template <typename T>
  T take(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, file_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // A 64-bit count of things that take at least `min_bytes` each.
  uint64_t take_count(uint64_t min_bytes, std::string_view what) {
    const uint64_t at = position_;
    const uint64_t count = take<uint64_t>(what);
    if (count > remaining() / min_bytes) {
      fail(at,
           fmt::format("{} is {}, more than fit into the {} bytes left", what, count, remaining()));
    }
    return count;
  }

  std::string take_string(std::string_view what) {
    const uint64_t length = take_count(1, fmt::format("the length of {}", what));
    std::string text(reinterpret_cast<const char*>(file_.data() + position_), length);
    position_ += length;
    return text;
  }

 private:
  const std::string& path_;
  std::span<const std::byte> file_;
  uint64_t position_ = 0;
};

template <typename T>
int64_t take_integer(Reader& in, std::string_view what) {
  const uint64_t at = in.position();
  const T value = in.take<T>(what);
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      in.fail(at, fmt::format("{} is {}, beyond 63 bits", what, value));
    }
  }
  return static_cast<int64_t>(value);
}

int64_t take_boolean(Reader& in, std::string_view what) {
  const uint64_t at = in.position();
  const uint8_t value = in.take<uint8_t>(what);
  if (value > 1) in.fail(at, fmt::format("{} should be a boolean (0 or 1) and is {}", what, value));
  return value;
}

template <typename T>
double take_float(Reader& in, std::string_view what) {
  return static_cast<double>(in.take<T>(what));
}

// `take` reads one element of at least `min_bytes` bytes.
template <typename Take>
auto take_elements(Reader& in, uint64_t min_bytes, const std::string& what, Take take) {
  const uint64_t count = in.take_count(min_bytes, fmt::format("the array length of {}", what));
  std::vector<std::decay_t<decltype(take(in, what))>> elements;
  elements.reserve(count);
  for (uint64_t i = 0; i < count; ++i) elements.push_back(take(in, what));
  return elements;
}

GgufArray take_array(Reader& in, const std::string& what) {
  const uint64_t at = in.position();
  const uint32_t type = in.take<uint32_t>(what);
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8:
      return take_elements(in, 1, what, take_integer<uint8_t>);
    case ValueType::i8:
      return take_elements(in, 1, what, take_integer<int8_t>);
    case ValueType::u16:
      return take_elements(in, 2, what, take_integer<uint16_t>);
    case ValueType::i16:
      return take_elements(in, 2, what, take_integer<int16_t>);
    case ValueType::u32:
      return take_elements(in, 4, what, take_integer<uint32_t>);
    case ValueType::i32:
      return take_elements(in, 4, what, take_integer<int32_t>);
    case ValueType::u64:
      return take_elements(in, 8, what, take_integer<uint64_t>);
    case ValueType::i64:
      return take_elements(in, 8, what, take_integer<int64_t>);
    case ValueType::f32:
      return take_elements(in, 4, what, take_float<float>);
    case ValueType::f64:
      return take_elements(in, 8, what, take_float<double>);
    case ValueType::boolean:
      return take_elements(in, 1, what, take_boolean);
    case ValueType::string:
      return take_elements(in, 8, what,
                           [](Reader& r, const std::string& w) { return r.take_string(w); });
    case ValueType::array:
      in.fail(at, fmt::format("{} is an array of arrays", what));
  }
  in.fail(at, fmt::format("{} is an array of the unknown value type {}", what, type));
}

GgufValue take_value(Reader& in, const std::string& what) {
  const uint64_t at = in.position();
  const uint32_t type = in.take<uint32_t>(fmt::format("the type of {}", what));
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8:
      return take_integer<uint8_t>(in, what);
    case ValueType::i8:
      return take_integer<int8_t>(in, what);
    case ValueType::u16:
      return take_integer<uint16_t>(in, what);
    case ValueType::i16:
      return take_integer<int16_t>(in, what);
    case ValueType::u32:
      return take_integer<uint32_t>(in, what);
    case ValueType::i32:
      return take_integer<int32_t>(in, what);
    case ValueType::u64:
      return take_integer<uint64_t>(in, what);
    case ValueType::i64:
      return take_integer<int64_t>(in, what);
    case ValueType::f32:
      return take_float<float>(in, what);
    case ValueType::f64:
      return take_float<double>(in, what);
    case ValueType::boolean:
      return take_boolean(in, what) != 0;
    case ValueType::string:
      return in.take_string(what);
    case ValueType::array:
      return take_array(in, what);
  }
  in.fail(at, fmt::format("{} has the unknown value type {}", what, type));
}

// Magic and version; leaves the cursor at the counts.
void check_magic(Reader& in) {
  constexpr uint32_t kMagic = 0x46554747, kSwappedMagic = 0x47475546;  // "GGUF", "FUGG"
  const uint32_t magic = in.take<uint32_t>("the magic number");
  const uint64_t at = in.position();
  if (magic != kMagic && magic != kSwappedMagic) {
    in.fail(0, "this is no GGUF file (it does not begin with \"GGUF\")");
  }
  const uint32_t version = in.take<uint32_t>("the version");
  // A big-endian file has its small version number in the upper bytes.
  if (magic == kSwappedMagic || (version != 0 && (version & 0xffff) == 0)) {
    in.fail(at, "this is a big-endian GGUF file; kvmark reads little-endian ones");
  }
  if (version != 2 && version != 3) {
    in.fail(at, fmt::format("GGUF version {}; kvmark reads versions 2 and 3", version));
  }
}

// What a tensor's entry in the header says; its bytes are looked up when the data's start is known.
struct TensorEntry {
  GgufTensor tensor;
  uint64_t header_at = 0;  // for errors
  uint64_t offset = 0;     // from the start of the data
  uint64_t bytes = 0;
};

TensorEntry take_tensor(Reader& in) {
  TensorEntry entry;
  entry.header_at = in.position();
  GgufTensor& tensor = entry.tensor;
  tensor.name = in.take_string("a tensor's name");
  const std::string what = fmt::format("tensor '{}'", printable_name(tensor.name));

  const uint64_t dims_at = in.position();
  const uint32_t dims = in.take<uint32_t>(what);
  if (dims < 1 || dims > kMaxDims) {
    in.fail(dims_at,
            fmt::format("{} has {} dimensions; 1 to {} are possible", what, dims, kMaxDims));
  }
  uint64_t values = 1;
  for (uint32_t d = 0; d < dims; ++d) {
    const uint64_t at = in.position();
    const uint64_t size = in.take<uint64_t>(what);
    // Bounded by 62 bits, so that no product of this function overflows.
    if (size < 1 || size > (uint64_t{1} << 62) / values) {
      in.fail(at, fmt::format("{} has an impossible size {} in dimension {}", what, size, d));
    }
    values *= size;
    if (d == 0) tensor.cols = static_cast<int64_t>(size);
  }
  tensor.rows = static_cast<int64_t>(values) / tensor.cols;

  const uint64_t type_at = in.position();
  const uint32_t type = in.take<uint32_t>(what);
  const GgufTypeInfo* info = find_gguf_type(type);
  if (info == nullptr) {
    in.fail(type_at,
            fmt::format("{} has the type number {}, which kvmark does not read", what, type));
  }
  tensor.type = info->type;
  if (tensor.cols % info->block_values != 0) {
    in.fail(dims_at, fmt::format("{} has rows of {} values, not a multiple of {}'s blocks of {}",
                                 what, tensor.cols, info->name, info->block_values));
  }
  const uint64_t blocks = values / static_cast<uint64_t>(info->block_values);
  if (blocks > in.size() / static_cast<uint64_t>(info->block_bytes)) {
    in.fail(dims_at,
            fmt::format("{} is larger than the file: {} {} values", what, values, info->name));
  }
  entry.bytes = blocks * static_cast<uint64_t>(info->block_bytes);
  entry.offset = in.take<uint64_t>(what);
  return entry;
}

// Points every tensor at its bytes; the data begin at the next aligned byte after the header.
void place_tensors(const Reader& in, uint64_t alignment, std::vector<TensorEntry>& entries) {
  const uint64_t padding = (alignment - in.position() % alignment) % alignment;
  const uint64_t start = in.position() + std::min(padding, in.remaining());
  const uint64_t data_bytes = in.size() - start;
  for (TensorEntry& entry : entries) {
    const std::string what = fmt::format("tensor '{}'", printable_name(entry.tensor.name));
    if (entry.offset % alignment != 0) {
      in.fail(entry.header_at, fmt::format("{} has the data offset {}, not a multiple of the "
                                           "alignment {}",
                                           what, entry.offset, alignment));
    }
    if (entry.offset > data_bytes || entry.bytes > data_bytes - entry.offset) {
      in.fail(entry.header_at,
              fmt::format("{} ({} bytes at data offset {}) reaches past the end of the file, whose "
                          "data are {} bytes from byte {}",
                          what, entry.bytes, entry.offset, data_bytes, start));
    }
    entry.tensor.bytes = in.bytes(start + entry.offset, entry.bytes);
  }
}

void check_overlap(const Reader& in, const std::vector<TensorEntry>& entries) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const TensorEntry* a, const TensorEntry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorEntry &before = *order[i - 1], &after = *order[i];
    if (before.offset + before.bytes > after.offset) {
      in.fail(after.header_at, fmt::format("tensors '{}' and '{}' overlap at data offset {}",
                                           printable_name(before.tensor.name),
                                           printable_name(after.tensor.name), after.offset));
    }
  }
}

std::string_view kind_name(const GgufValue& value) {
  constexpr std::string_view kScalars[] = {"an integer", "a float", "a boolean", "text"};
  constexpr std::string_view kArrays[] = {"an array of texts", "an array of integers",
                                          "an array of floats"};
  const GgufArray* array = std::get_if<GgufArray>(&value);
  return array ? kArrays[array->index()] : kScalars[value.index()];
}

template <typename T>
const std::vector<T>* array_of(const GgufValue& value) {
  const GgufArray* array = std::get_if<GgufArray>(&value);
  return array ? std::get_if<std::vector<T>>(array) : nullptr;
}

}  // namespace

std::string printable_name(std::string_view name) {
  constexpr size_t kShown = 80;
  std::string out;
  for (const char c : name.substr(0, kShown)) {
    out += c >= ' ' && c <= '~' ? std::string(1, c)
                                : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (name.size() > kShown) out += "…";
  return out;
}

void GgufFile::Unmap::operator()(void* address) const { munmap(address, size); }

GgufFile::GgufFile(const std::string& path) : path_(path), map_(map_file(path)) { read_header(); }

GgufFile::~GgufFile() = default;

GgufFile::Mapping GgufFile::map_file(const std::string& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) close(fd);
    }
  };
  // Non-blocking: opening a FIFO must not wait for a writer.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) throw RuntimeError(fmt::format("{}: cannot open: {}", path, errno_text()));
  struct stat status = {};
  if (fstat(file.fd, &status) != 0) {
    throw RuntimeError(fmt::format("{}: cannot stat: {}", path, errno_text()));
  }
  if (!S_ISREG(status.st_mode)) {
    throw RuntimeError(fmt::format("{}: not a regular file; a GGUF file was expected", path));
  }
  if (status.st_size == 0) throw RuntimeError(fmt::format("{}: the file is empty", path));
  const size_t size = static_cast<size_t>(status.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) {
    throw RuntimeError(fmt::format("{}: cannot map: {}", path, errno_text()));
  }
  return Mapping(address, Unmap{size});
}

void GgufFile::read_header() {
  constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;  // empty name, one dimension
  constexpr uint64_t kMinValueBytes = 8 + 4 + 1;           // empty key, one byte
  Reader in(path_, {static_cast<const std::byte*>(map_.get()), map_.get_deleter().size});
  check_magic(in);
  const uint64_t tensor_count = in.take_count(kMinTensorBytes, "the number of tensors");
  const uint64_t value_count = in.take_count(kMinValueBytes, "the number of metadata values");

  for (uint64_t i = 0; i < value_count; ++i) {
    const uint64_t at = in.position();
    std::string key = in.take_string("a metadata key");
    const std::string what = fmt::format("key '{}'", printable_name(key));
    if (values_.count(key) != 0) in.fail(at, fmt::format("{} stands there twice", what));
    GgufValue value = take_value(in, what);
    values_.emplace(std::move(key), std::move(value));
  }

  uint64_t alignment = kDefaultAlignment;
  if (find("general.alignment") != nullptr) {
    const int64_t wanted = integer("general.alignment");
    if (wanted < 1 || !std::has_single_bit(static_cast<uint64_t>(wanted))) {
      in.fail(in.position(), fmt::format("general.alignment is {}, not a power of two", wanted));
    }
    alignment = static_cast<uint64_t>(wanted);
  }

  std::vector<TensorEntry> entries;
  entries.reserve(tensor_count);
  for (uint64_t i = 0; i < tensor_count; ++i) {
    TensorEntry entry = take_tensor(in);
    if (!by_name_.emplace(entry.tensor.name, i).second) {
      in.fail(entry.header_at,
              fmt::format("tensor '{}' stands there twice", printable_name(entry.tensor.name)));
    }
    entries.push_back(std::move(entry));
  }
  place_tensors(in, alignment, entries);
  check_overlap(in, entries);
  tensors_.reserve(entries.size());
  for (TensorEntry& entry : entries) tensors_.push_back(std::move(entry.tensor));
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = values_.find(std::string(key));
  return it == values_.end() ? nullptr : &it->second;
}

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue& GgufFile::require(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) throw RuntimeError(fmt::format("{}: has no key '{}'", path_, key));
  return *value;
}

void GgufFile::fail_type(std::string_view key, const GgufValue& value,
                         std::string_view expected) const {
  throw RuntimeError(
      fmt::format("{}: key '{}' is {}, expected {}", path_, key, kind_name(value), expected));
}

int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue& value = require(key);
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
  fail_type(key, value, "an integer");
}

double GgufFile::number(std::string_view key) const {
  const GgufValue& value = require(key);
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const int64_t* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  fail_type(key, value, "a number");
}

const std::string& GgufFile::text(std::string_view key) const {
  const GgufValue& value = require(key);
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  fail_type(key, value, "text");
}

const std::vector<std::string>& GgufFile::strings(std::string_view key) const {
  const GgufValue& value = require(key);
  if (const auto* texts = array_of<std::string>(value)) return *texts;
  fail_type(key, value, "an array of texts");
}

const std::vector<int64_t>& GgufFile::integers(std::string_view key) const {
  const GgufValue& value = require(key);
  if (const auto* numbers = array_of<int64_t>(value)) return *numbers;
  fail_type(key, value, "an array of integers");
}

}  // namespace kvmark
