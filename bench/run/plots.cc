#include "bench/run/plots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "bench/record/whole_file.h"
#include "bench/run/interrupt.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// The distribution's Python first: that is where `make` installs matplotlib.
constexpr const char* kPythons[] = {"/usr/bin/python3", "python3"};

// What a Python that draws can do.
constexpr const char* kPlotting = "import matplotlib";

// What draw_comparison() leaves beside its picture; clear.py knows it.
constexpr const char* kComparison = "/comparison.json";

// plot.py's exit code where it drew some pictures, but not all.
constexpr int kSomeFailed = 3;

constexpr int kLookMs = 20;  // from one look whether a script has ended to the next

// Waits until a child has ended, and hands Ctrl-C on to it. Returns its exit code, where it has
// one. Throws Interrupted.
std::optional<int> wait_for(pid_t pid) {
  int status = 0;
  pid_t ended = 0;
  pollfd interrupt{interrupt_fd(), POLLIN, 0};
  while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
    if (poll(&interrupt, 1, kLookMs) <= 0) continue;
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    throw Interrupted();
  }
  throw_if_interrupted();
  if (ended < 0 || !WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

// Runs a program with its stdout on our stderr (`quiet`: nowhere). Returns its exit code, or
// nothing where it has none: it could not be started, or was killed. Throws Interrupted.
std::optional<int> execute(const std::vector<std::string>& command, bool quiet) {
  const InterruptScope interrupts;
  // In a process group of its own, so that Ctrl-C reaches it once, by us.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    }
  } else {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return std::nullopt;
  return wait_for(pid);
}

// The first Python that runs this statement.
std::optional<std::string> python_that_runs(const std::string& statement) {
  for (const char* name : kPythons) {
    if (execute({name, "-c", statement}, true) == 0) return name;
  }
  return std::nullopt;
}

// In the source tree (build/bin/kvmark) or installed (bin/kvmark); "" when in neither.
std::string find_script(const std::string& name) {
  std::error_code error;
  const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* where : {"../../plots", "../share/kvmark/plots"}) {
    const fs::path script = (bin / where / name).lexically_normal();
    if (fs::exists(script, error)) return script;
  }
  return "";
}

// A program to be followed by its arguments; or why there is none.
struct Script {
  std::vector<std::string> command;
  std::string missing;
};

// `statement`: what a Python must run to be a `python` that this script needs.
Script find(const std::string& name, const std::string& statement, const std::string& python) {
  const std::string script = find_script(name);
  if (script.empty()) return {{}, fmt::format("plots/{} is not beside this build", name)};
  const auto found = python_that_runs(statement);
  if (!found) return {{}, fmt::format("there is no {}", python)};
  return {{*found, script}, ""};
}

// What draws into a folder.
Script find_plotter(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    return {{}, fmt::format("{} is a file, and their folder goes there; move it away", folder)};
  }
  return find("plot.py", kPlotting, "python3 with matplotlib");
}

// Its exit code, where it has one.
std::optional<int> run(const Script& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = script.command;
  command.insert(command.end(), arguments.begin(), arguments.end());
  return execute(command, false);
}

std::string failed(const Script& script) {
  return fmt::format("{} failed; its output stands above", script.command.back());
}

// "" or why not everything is drawn.
std::string draw(const Script& plotter, const std::vector<std::string>& arguments) {
  if (!plotter.missing.empty()) return "no plots: " + plotter.missing;
  const auto code = run(plotter, arguments);
  if (code == 0) return "";
  if (code == kSomeFailed) return "plots: some could not be drawn; what stands above says why";
  return "no plots: " + failed(plotter);
}

}  // namespace

std::optional<std::string> plotting_python() { return python_that_runs(kPlotting); }

std::string remove_plots(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return "";
  const Script remover = find("clear.py", "", "python3");  // it knows the files by name
  std::string problem = remover.missing;
  if (problem.empty() && run(remover, {folder}) != 0) problem = failed(remover);
  if (!problem.empty()) {
    return fmt::format("{}: pictures of an earlier start stay there ({}); remove them", folder,
                       problem);
  }
  fs::remove(folder, error);  // which fails where something else is in it
  return "";
}

std::string draw_plots(const std::vector<std::string>& runs, const std::string& folder) {
  std::vector<std::string> arguments = runs;
  arguments.insert(arguments.end(), {"-o", folder});
  return draw(find_plotter(folder), arguments);
}

std::string draw_comparison(const std::string& base, const std::string& now,
                            const std::string& comparison, const std::string& folder) {
  Script plotter = find_plotter(folder);
  const std::string path = folder + kComparison;
  try {
    if (plotter.missing.empty()) write_whole(path, comparison);
  } catch (const RuntimeError& e) {
    plotter.missing = e.what();
  }
  return draw(plotter, {base, now, "--compare", path, "-o", folder});
}

}  // namespace kvmark
