#include "bench/run/plots.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "bench/record/whole_file.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;

// The distribution's Python first: that is where `make` installs matplotlib.
constexpr const char* kPythons[] = {"/usr/bin/python3", "python3"};

// What draw_comparison() leaves beside its picture.
constexpr const char* kComparison = "/comparison.json";

// plot.py's exit code where it drew some pictures, but not all.
constexpr int kSomeFailed = 1;

// Runs a program with its stdout on our stderr (`quiet`: nowhere). Returns its exit code, or
// nothing where it has none: it could not be started, or was killed.
std::optional<int> execute(const std::vector<std::string>& command, bool quiet) {
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
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  if (!WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

// In the source tree (build/bin/kvmark) or installed (bin/kvmark); "" when in neither.
std::string find_script() {
  std::error_code error;
  const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* where : {"../../plots/plot.py", "../share/kvmark/plots/plot.py"}) {
    const fs::path script = (bin / where).lexically_normal();
    if (!error && fs::exists(script)) return script;
  }
  return "";
}

// The program that draws, to be followed by its arguments; or why there is none.
struct Plotter {
  std::vector<std::string> command;
  std::string missing;
};

Plotter find_plotter() {
  const std::string script = find_script();
  if (script.empty()) return {{}, "no plots: plots/plot.py is not beside this build"};
  const auto python = plotting_python();
  if (!python) return {{}, "no plots: there is no python3 with matplotlib"};
  return {{*python, script}, ""};
}

// "" or why it did not draw everything.
std::string run(Plotter plotter, const std::vector<std::string>& arguments) {
  if (!plotter.missing.empty()) return plotter.missing;
  std::vector<std::string>& command = plotter.command;
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto code = execute(command, false);
  if (code == 0) return "";
  if (code == kSomeFailed) return "plots: some could not be drawn; what stands above says why";
  return fmt::format("no plots: {} failed; its output stands above", command[1]);
}

}  // namespace

std::optional<std::string> plotting_python() {
  for (const char* name : kPythons) {
    if (execute({name, "-c", "import matplotlib"}, true) == 0) return name;
  }
  return std::nullopt;
}

std::string remove_plots(const std::string& folder) {
  if (!fs::is_directory(folder)) return "";
  const Plotter plotter = find_plotter();  // the one who knows which files are its own
  const std::string problem =
      plotter.missing.empty() ? run(plotter, {"--clear", "-o", folder}) : plotter.missing;
  if (!problem.empty()) return fmt::format("{}: its pictures are of an earlier start", folder);
  std::error_code not_empty;
  fs::remove(folder, not_empty);
  return "";
}

std::string draw_plots(const std::vector<std::string>& runs, const std::string& folder) {
  fs::remove(folder + kComparison);  // of an earlier report of two runs
  std::vector<std::string> arguments = runs;
  arguments.insert(arguments.end(), {"-o", folder});
  return run(find_plotter(), arguments);
}

std::string draw_comparison(const std::string& base, const std::string& now,
                            const std::string& comparison, const std::string& folder) {
  const Plotter plotter = find_plotter();
  if (!plotter.missing.empty()) return plotter.missing;
  const std::string path = folder + kComparison;
  write_whole(path, comparison);
  return run(plotter, {base, now, "--compare", path, "-o", folder});
}

}  // namespace kvmark
