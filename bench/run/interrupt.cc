#include "bench/run/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "engines/core/check.h"

namespace kvmark {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};

volatile sig_atomic_t interrupted = 0;
int wake_pipe[2] = {-1, -1};
std::array<struct sigaction, kSignals.size()> previous;

void on_signal(int) {
  const int saved = errno;
  interrupted = 1;
  // A full pipe is as readable as one with a new byte.
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], "", 1);
  errno = saved;
}

}  // namespace

InterruptScope::InterruptScope() {
  check(wake_pipe[0] < 0, "two InterruptScopes at once");
  if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw RuntimeError("no pipe for signals");
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // Reset after the first signal, so that the second one is not caught.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
}

InterruptScope::~InterruptScope() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
  for (int& fd : wake_pipe) {
    close(fd);
    fd = -1;
  }
  interrupted = 0;
}

int interrupt_fd() { return wake_pipe[0]; }

void throw_if_interrupted() {
  if (interrupted) throw Interrupted();
}

}  // namespace kvmark
