// Errors. Libraries throw; only `main` prints and exits.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace kvmark {

// A broken promise between two parts of kvmark (a bug), or a misuse of a seam.
struct LogicError : std::logic_error {
  using std::logic_error::logic_error;
};

// Something in the world went wrong: a file, memory, a device, a worker. Status `failed`, exit 3.
struct RuntimeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The user asked for something that cannot be: the text names the place, what was expected and what
// to do. Exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws LogicError with the formatted text unless `ok`.
template <typename... Args>
void check(bool ok, fmt::format_string<Args...> text, Args&&... args) {
  if (!ok) throw LogicError(fmt::format(text, std::forward<Args>(args)...));
}

// Why an operation was not done, for the cases a caller must expect (a full pool, a truncation that
// cannot be exact). Nothing was changed.
struct Refusal {
  std::string reason;
};

}  // namespace kvmark
