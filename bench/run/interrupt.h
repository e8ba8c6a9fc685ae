// Ctrl-C as something that a run can wait for.
#pragma once

#include <exception>

namespace kvmark {

// Thrown where a run notices SIGINT or SIGTERM; everything unwinds, finished rows stay. Exit 130.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// While it lives, the first SIGINT or SIGTERM sets a flag and makes interrupt_fd() readable; a
// second one ends the process at once. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

// Readable after an interrupt, to be waited for in poll(); −1 outside a scope.
int interrupt_fd();
// Throws Interrupted after an interrupt.
void throw_if_interrupted();

}  // namespace kvmark
