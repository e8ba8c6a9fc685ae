#include "bench/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "bench/record/clock.h"
#include "bench/run/interrupt.h"

namespace kvmark {
namespace {

constexpr size_t kMaxReply = size_t{256} << 20;  // a longer line is not a reply
constexpr size_t kMaxErrorLine = 4096;           // longer lines of stderr are cut
constexpr double kTickSeconds = 0.5;
constexpr double kExitSeconds = 5;  // from a closed stdout to the end of the process

double now() { return 1e-9 * static_cast<double>(now_ns()); }

// Both ends close on exec, so that no other worker inherits them.
struct Pipe {
  Fd read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw WorkerFailed(fmt::format("no pipe for a worker: {}", strerror(errno)));
    }
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

void set_nonblocking(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// Appends what is there now. False at the end of the file.
bool read_available(const Fd& fd, std::string& to) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n > 0) {
      to.append(buffer.data(), static_cast<size_t>(n));
      if (to.size() > kMaxReply) return true;
    } else if (n == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

std::string shortened(std::string_view text, size_t length = 120) {
  return text.size() <= length ? std::string(text) : std::string(text.substr(0, length)) + "…";
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return name ? fmt::format("killed by SIG{}", name)
                : fmt::format("killed by signal {}", WTERMSIG(status));
  }
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

std::optional<std::string> text_of(const WorkerProcess::Json& reply, const char* key) {
  const auto it = reply.find(key);
  if (it == reply.end() || !it->is_string()) return {};
  return it->get<std::string>();
}

// OpenBLAS starts threads as soon as it is loaded, and they look for work for the first tenth of a
// second, on the cores of ours. Products are cut over our own pool.
constexpr std::string_view kBlasThreads = "OPENBLAS_NUM_THREADS=1";

std::vector<char*> worker_environment() {
  const std::string_view name = kBlasThreads.substr(0, kBlasThreads.find('=') + 1);
  std::vector<char*> variables = {const_cast<char*>(kBlasThreads.data())};
  for (char** variable = environ; *variable; ++variable) {
    if (std::string_view(*variable).substr(0, name.size()) != name) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

pid_t spawn(const WorkerCommand& command, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, reset;
  sigemptyset(&none);
  sigemptyset(&reset);
  for (const int s : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&reset, s);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &reset);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const std::vector<char*> environment = worker_environment();
  const int error =
      posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw WorkerFailed(fmt::format("cannot start `{}`: {}", command[0], strerror(error)));
  }
  return pid;
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

// The link, not its target: it still names this program after a rebuild has replaced the file. Not
// /proc/self, which in a program that starts the worker would be that one.
WorkerCommand own_worker_command() { return {fmt::format("/proc/{}/exe", getpid()), "worker"}; }

WorkerProcess::WorkerProcess(const WorkerCommand& command, std::string label,
                             const std::string& log_path)
    : label_(std::move(label)) {
  check(!command.empty(), "a worker needs a command");
  signal(SIGPIPE, SIG_IGN);
  log_.reset(open(log_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (log_.get() < 0) {
    throw RuntimeError(fmt::format("cannot write {}: {}", log_path, strerror(errno)));
  }
  Pipe in, out, err;
  pid_ = spawn(command, in.read.get(), out.write.get(), err.write.get());
  stdin_ = std::move(in.write);
  stdout_ = std::move(out.read);
  stderr_ = std::move(err.read);
  for (const Fd* fd : {&stdin_, &stdout_, &stderr_}) set_nonblocking(*fd);
}

WorkerProcess::~WorkerProcess() {
  kill_group();
  drain_stderr();
}

WorkerProcess::Json WorkerProcess::request(const Json& command, std::string_view expected,
                                           double timeout_s, const std::function<void()>& tick) {
  const std::string name = command.at("cmd").get<std::string>();
  if (reaped_) fail_as_exited(name);
  // What stands in the pipe before a question was asked is not an answer to it.
  drain_stdout();
  if (!received_.empty()) {
    fail(fmt::format("spoke out of turn, before `{}`: \"{}\"", name, shortened(received_)));
  }
  const double deadline = now() + timeout_s;
  send(command.dump() + "\n", name, deadline);
  const std::string line = receive(name, deadline, timeout_s, tick);

  const Json reply = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object() || !reply.contains("reply") || !reply["reply"].is_string()) {
    fail(fmt::format("answered `{}` with what is not a reply: \"{}\"", name, shortened(line)));
  }
  const std::string kind = reply["reply"].get<std::string>();
  if (kind == "error") {
    fail(text_of(reply, "reason").value_or("an error without a reason"),
         text_of(reply, "kind").value_or(""));
  }
  if (kind != expected) {
    fail(fmt::format("answered `{}` with `{}` instead of `{}`", name, kind, expected));
  }
  return reply;
}

void WorkerProcess::wait_for_exit(double timeout_s) {
  stdin_.reset();
  if (!reap(timeout_s)) fail(fmt::format("did not exit within {} s of `finish`", timeout_s));
  drain_stderr();
  if (status_ != 0) fail_as_exited("finish");
}

void WorkerProcess::send(const std::string& line, std::string_view command, double deadline) {
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n = write(stdin_.get(), line.data() + sent, line.size() - sent);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      throw_if_interrupted();
      if (now() > deadline) fail(fmt::format("does not read its `{}` request", command));
      wait_for_events(POLLOUT, deadline);
      drain_stderr();
    } else if (errno != EINTR) {
      fail_as_exited(command);
    }
  }
}

std::string WorkerProcess::receive(std::string_view command, double deadline, double timeout_s,
                                   const std::function<void()>& tick) {
  while (true) {
    const bool open = drain_stdout();
    drain_stderr();
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (!open) {
      if (!received_.empty()) {
        fail(fmt::format("answered `{}` with half a line: \"{}\"", command, shortened(received_)));
      }
      fail_as_exited(command);
    }
    if (received_.size() > kMaxReply) {
      fail(fmt::format("answered `{}` with a line without an end", command));
    }
    throw_if_interrupted();
    if (now() > deadline) fail(fmt::format("no answer to `{}` within {:g} s", command, timeout_s));
    wait_for_events(0, deadline);
    if (tick) tick();
  }
}

// Returns when the worker wrote something, when `stdin_events` hold, after an interrupt, or in time
// for a tick.
void WorkerProcess::wait_for_events(short stdin_events, double deadline) {
  std::array<pollfd, 4> fds{pollfd{stdout_.get(), POLLIN, 0}, pollfd{stderr_.get(), POLLIN, 0},
                            pollfd{interrupt_fd(), POLLIN, 0},
                            pollfd{stdin_events ? stdin_.get() : -1, stdin_events, 0}};
  const double seconds = std::clamp(deadline - now(), 0.0, kTickSeconds);
  poll(fds.data(), fds.size(), static_cast<int>(seconds * 1000) + 1);
}

bool WorkerProcess::drain_stdout() { return read_available(stdout_, received_); }

void WorkerProcess::drain_stderr() {
  // A closed stderr is always readable; leaving it in poll() would spin.
  if (stderr_.get() >= 0 && !read_available(stderr_, error_text_)) {
    stderr_.reset();
    if (!error_text_.empty() && error_text_.back() != '\n') error_text_ += '\n';
  }
  size_t begin = 0;
  for (size_t end; (end = error_text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    log(std::string_view(error_text_).substr(begin, end - begin));
  }
  error_text_.erase(0, begin);
  if (error_text_.size() > kMaxErrorLine) {
    log(error_text_);
    error_text_.clear();
  }
}

void WorkerProcess::log(std::string_view line) {
  last_error_ = shortened(line, 400);
  const std::string text = fmt::format("[{}] {}\n", label_, shortened(line, kMaxErrorLine));
  [[maybe_unused]] const ssize_t written = write(log_.get(), text.data(), text.size());
}

bool WorkerProcess::reap(double timeout_s) {
  const double deadline = now() + timeout_s;
  while (!reaped_) {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == pid_) {
      kill_group();
      break;
    }
    throw_if_interrupted();
    if (now() > deadline) return false;
    drain_stderr();
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

// Before the worker is reaped, as long as its id can't name another group; what it started itself
// goes with it.
void WorkerProcess::kill_group() {
  if (reaped_) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
}

void WorkerProcess::fail(std::string reason, std::string error_kind) {
  kill_group();
  throw WorkerFailed(reason, std::move(error_kind));
}

// The worker closed its stdout or stdin, or was already gone.
void WorkerProcess::fail_as_exited(std::string_view command) {
  if (!reap(kExitSeconds)) fail(fmt::format("closed its output at `{}`", command));
  drain_stderr();
  std::string reason = fmt::format("{} at `{}`", describe_exit(status_), command);
  if (!last_error_.empty()) reason += fmt::format(": {}", last_error_);
  fail(std::move(reason));
}

}  // namespace kvmark
