// A worker as the parent sees it: a process that answers JSON lines (protocol.md).
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engines/core/check.h"

namespace kvmark {

// A worker is dead, silent, babbling, or answered with an error. what() is a reason for a person:
// "killed by SIGKILL", "no answer to `round` within 60 s", "exited with 1: …".
struct WorkerFailed : RuntimeError {
  explicit WorkerFailed(const std::string& what, std::string kind = "")
      : RuntimeError(what), error_kind(std::move(kind)) {}
  std::string error_kind;  // of its error reply: usage, runtime or memory; "": it gave none
};

// An owned file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }

  int get() const { return fd_; }
  void reset(int fd = -1);

 private:
  int fd_;
};

// The program that serves as a worker, with its arguments.
using WorkerCommand = std::vector<std::string>;
// This very program as `kvmark worker`.
WorkerCommand own_worker_command();

// The child runs in a process group of its own, so that Ctrl-C reaches the parent alone, and is
// killed with its group when this object goes.
class WorkerProcess {
 public:
  using Json = nlohmann::ordered_json;

  // Starts the program (found through PATH). What it writes on stderr goes line by line, behind
  // `label`, to the file at `log_path` (appended). Throws WorkerFailed when it cannot be started.
  // SIGPIPE is ignored in this process from the first worker on: a worker's death must be an error
  // of its case, not the end of the run.
  WorkerProcess(const WorkerCommand& command, std::string label, const std::string& log_path);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends {"cmd": …} and waits for the line {"reply": `expected`, …}. Calls `tick`, where given,
  // about twice a second meanwhile. Throws WorkerFailed, after which the worker is dead, and
  // Interrupted on Ctrl-C.
  Json request(const Json& command, std::string_view expected, double timeout_s,
               const std::function<void()>& tick = {});

  // After the last reply: closes the worker's stdin and waits until it exits with 0. Throws
  // WorkerFailed when it does not.
  void wait_for_exit(double timeout_s);

  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] void fail(std::string reason, std::string error_kind = "");
  [[noreturn]] void fail_as_exited(std::string_view command);
  void send(const std::string& line, std::string_view command, double deadline);
  std::string receive(std::string_view command, double deadline, double timeout_s,
                      const std::function<void()>& tick);
  void wait_for_events(short stdin_events, double deadline);
  bool drain_stdout();  // false: the worker closed it
  void drain_stderr();
  void log(std::string_view line);
  bool reap(double timeout_s);
  void kill_group();

  std::string label_;
  pid_t pid_ = -1;
  int status_ = 0;  // as from waitpid, once reaped
  bool reaped_ = false;
  Fd stdin_, stdout_, stderr_, log_;
  std::string received_;    // of stdout, not yet a whole line
  std::string error_text_;  // of stderr, not yet a whole line
  std::string last_error_;  // the last whole line of stderr
};

}  // namespace kvmark
