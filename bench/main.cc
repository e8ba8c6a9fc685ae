// The command line: which command, and with which exit code it ends. Only here errors are printed.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/record/environment.h"
#include "bench/record/exit_code.h"
#include "bench/record/record.h"
#include "bench/run/interrupt.h"
#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/core/nearest.h"

namespace kvmark {
namespace {

// A wrong subcommand is named, with the nearest right one.
void check_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_name() == argv[1]) return;
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  throw UsageError(fmt::format("there is no command `{}`{}; the commands are: {}", argv[1],
                               did_you_mean(argv[1], names), fmt::join(names, ", ")));
}

// An empty word is what a script passes whose variable is not set. It would be taken for an option
// that was not given.
void check_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      throw UsageError(fmt::format("{}: is empty; expected {}, see `kvmark {} --help`",
                                   option->get_name(), option->get_type_name(),
                                   command.get_name()));
    }
  }
}

int dispatch(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    check_values(*command.app);
    return command.act();
  }
  throw LogicError("no command was asked for");  // CLI11 requires one
}

// Nobody reads stdout any more (`kvmark … | head`).
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// What stdout couldn't take is lost, which is an error unless its reader had enough.
int flushed(int code) {
  std::cout.flush();
  if (std::cout.good() || reader_is_gone()) return code;
  std::cerr << "kvmark: cannot write to stdout\n";
  return worst_of({static_cast<ExitCode>(code), kExitFailed});
}

int guarded_main(int argc, char** argv) {
  // 1. The options.
  CLI::App app("kvmark: what a way of keeping keys and values costs, saves and loses", "kvmark");
  app.require_subcommand(1);
  app.set_version_flag("--version", [] {
    const auto git = environment({})["git"];
    return fmt::format("kvmark {}, records {}", git.is_string() ? git.get<std::string>() : "",
                       kRecordSchema);
  });
  const std::vector<Command> commands = add_commands(app);
  try {
    check_subcommand(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    app.exit(e, std::cout, std::cerr);
    return flushed(kExitFine);
  } catch (const CLI::ParseError& e) {
    std::cerr << "kvmark: " << e.what() << "; see `kvmark --help`\n";
    return kExitUsage;
  } catch (const UsageError& e) {
    std::cerr << "kvmark: " << e.what() << "\n";
    return kExitUsage;
  }

  // 2. The work, and what came of it.
  try {
    simd_target();  // a wrong KVMARK_SIMD is no mistake of a plan's line
    return flushed(dispatch(commands));
  } catch (const UsageError& e) {
    std::cout.flush();
    std::cerr << "kvmark: " << e.what() << "\n";
    return kExitUsage;
  } catch (const Interrupted& e) {
    std::cerr << "kvmark: " << e.what() << "\n";
    return kExitInterrupted;
  } catch (const LogicError& e) {
    std::cerr << "kvmark: this is a bug in kvmark: " << e.what() << "\n";
    return kExitFailed;
  } catch (const std::exception& e) {
    std::cerr << "kvmark: " << e.what() << "\n";
    return kExitFailed;
  }
}

}  // namespace
}  // namespace kvmark

int main(int argc, char** argv) {
  // A closed pipe or a file over its limit is an error of the write, not the end of the process.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return kvmark::guarded_main(argc, argv);
}
