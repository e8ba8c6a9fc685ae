#include "bench/record/json_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& path, std::string_view action) {
  throw RuntimeError(fmt::format("{}: cannot {}: {}", path, action, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(path, "open for appending");
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Copying and writing JSON recurse: what nests deeper than any record would take the stack.
bool nests_too_deep(std::string_view line) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// A strict prefix of an object is never a valid text, so whatever parses is whole.
std::optional<Json> parse(std::string_view line) {
  if (nests_too_deep(line)) return std::nullopt;
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// The last line, read backwards from the end, with its line end where it has one.
std::string last_line(int fd, off_t size, const std::string& path) {
  std::string line;
  constexpr off_t kChunk = 4096;
  for (off_t end = size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - kChunk);
    std::string chunk(end - begin, '\0');
    if (::pread(fd, chunk.data(), chunk.size(), begin) != static_cast<ssize_t>(chunk.size())) {
      fail(path, "read");
    }
    line.insert(0, chunk);
    // Its own line end does not count.
    const size_t line_end = line.size() < 2 ? std::string::npos : line.rfind('\n', line.size() - 2);
    if (line_end != std::string::npos) return line.substr(line_end + 1);
    end = begin;
  }
  return line;
}

void write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "write");
    text.remove_prefix(written);
  }
}

// Leaves the file empty or ending with a whole record and its line end. A write that was cut off
// has no line end; what has one was written by somebody else, and is not ours to remove.
void mend_tail(int fd, const std::string& path) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) fail(path, "seek");
  const std::string line = last_line(fd, size, path);
  if (is_blank(line)) return;
  const bool whole = line.back() == '\n';
  if (!parse(line)) {
    if (whole) {
      throw RuntimeError(
          fmt::format("{}: its last line is no JSON object; repair or remove the line", path));
    }
    if (::ftruncate(fd, size - static_cast<off_t>(line.size())) != 0) {
      fail(path, "remove a torn last line");
    }
  } else if (!whole) {
    write_all(fd, "\n", path);
  }
}

}  // namespace

void append_json_line(const std::string& path, const Json& object) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);  // open() says why not

  // A reason may quote a worker's bytes, which need not be UTF-8.
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const Descriptor file(path);
  mend_tail(file.get(), path);
  write_all(file.get(), line, path);
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail(path, "sync");  // EINVAL: a pipe or device
}

JsonLines read_json_lines(const std::string& path, std::string_view what,
                          const std::function<std::string(const Json&)>& problem_of) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw UsageError(
        fmt::format("{}: is a folder; expected a file, a {} on each line", path, what));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string text = std::move(bytes).str();

  JsonLines result;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (is_blank(line)) continue;
    auto object = parse(line);
    if (!object && end == std::string_view::npos) {
      result.torn = fmt::format("{}:{}: the last line is cut off; it is left out", path, number);
      break;
    }
    const std::string problem = object ? problem_of(*object) : "expected one JSON object a line";
    if (!problem.empty()) {
      throw UsageError(fmt::format("{}:{}: not a {}: {}; repair or remove the line", path, number,
                                   what, problem));
    }
    result.lines.push_back(std::move(*object));
  }
  return result;
}

}  // namespace kvmark
