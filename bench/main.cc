// The command line: which subcommand, with which options; what comes out and with which exit code.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/plan/plan.h"
#include "bench/record/environment.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/run/generate.h"
#include "bench/run/list.h"
#include "bench/run/run.h"
#include "bench/run/run_folder.h"
#include "bench/run/worker.h"
#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/core/nearest.h"

namespace kvmark {
namespace {

// A flag of `run` that stands for a field of the plan, by the name of the flag.
struct AxisFlag {
  const char* flag;
  const char* value;
  const char* help;
};
constexpr AxisFlag kAxisFlags[] = {
    {"--engine", "LIST", "Engines, e.g. contiguous,fp16,paged:16/int8:g32"},
    {"--device", "LIST", "Devices, e.g. cpu"},
    {"--model", "NAME|FILE|DIR", "A preset, a GGUF file, or a folder with a config.json"},
    {"--seq-len", "RANGE", "prompt_len + gen_len: 128,256 or 128-8192*2 or 1024-4096+1024"},
    {"--prompt-len", "RANGE", "Tokens in the cache before decoding starts"},
    {"--gen-len", "RANGE", "Tokens to generate"},
    {"--heads", "LIST", "Query and KV heads, e.g. 8:2,32:8"},
    {"--batch", "RANGE", "Sequences that decode in lockstep"},
    {"--threads", "LIST", "Threads of a worker"},
    {"--rounds", "N", "Rounds at most"},
};

struct Options {
  RunRequest run;
  std::vector<std::string> axis_values = std::vector<std::string>(std::size(kAxisFlags));
  std::vector<std::string> set;
  bool no_report = false;
  std::string topic;
  std::string exported, format = "csv";
  GenerateOptions generate;
  std::string schema;
};

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

// Flags first, then --set, so that both the order of the command line and the plan's keys hold.
std::vector<Override> overrides_of(const CLI::App& run, const Options& options) {
  std::vector<Override> overrides;
  for (size_t i = 0; i < std::size(kAxisFlags); ++i) {
    const char* flag = kAxisFlags[i].flag;
    if (run.count(flag) == 0) continue;
    std::string key = flag + 2;
    for (char& c : key) c = c == '-' ? '_' : c;
    overrides.push_back({flag, key, options.axis_values[i]});
  }
  for (const std::string& text : options.set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(
          fmt::format("--set {}: expected key=value, such as workload.max_seq_len=2048", text));
    }
    overrides.push_back({"--set", text.substr(0, equals), text.substr(equals + 1)});
  }
  return overrides;
}

void add_run(CLI::App& app, Options& o) {
  CLI::App* run = app.add_subcommand("run", "Run the cases of one or more plans");
  run->add_option("CONFIG", o.run.configs, "Plans, YAML or JSON; their rows go into one run")
      ->required();
  for (size_t i = 0; i < std::size(kAxisFlags); ++i) {
    run->add_option(kAxisFlags[i].flag, o.axis_values[i], kAxisFlags[i].help)
        ->type_name(kAxisFlags[i].value);
  }
  run->add_option("--set", o.set,
                  "Any field of the plan (see `kvmark list fields`); repeat --set for each")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  run->add_option("-o,--output", o.run.folder, "Folder of the run [results/NAME-TIME]")
      ->type_name("DIR");
  run->add_flag("--resume", o.run.resume, "Go on with the run in -o: cases without a good row");
  run->add_flag("--dry-run", o.run.dry_run,
                "Only show the cases, with predicted bytes and seconds");
  run->add_flag("--no-report", o.no_report, "Draw no plots");
}

void add_others(CLI::App& app, Options& o) {
  CLI::App* list = app.add_subcommand("list", "What there is to choose from");
  std::string topics;
  for (const std::string& topic : list_topics()) topics += (topics.empty() ? "" : ", ") + topic;
  list->add_option("TOPIC", o.topic, topics)->required();

  CLI::App* exported = app.add_subcommand("export", "Print the rows of a run for other tools");
  exported->add_option("RUN", o.exported, "A run's folder, or its records.jsonl")->required();
  exported->add_option("--format", o.format, "csv or md")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "md"}));

  CLI::App* generate = app.add_subcommand("generate", "Let a model speak through an engine");
  generate->add_option("--model", o.generate.model, "A GGUF file")->required();
  generate->add_option("--engine", o.generate.engine, "An engine")->required();
  generate->add_option("--prompt", o.generate.prompt, "The text to continue")->required();
  generate->add_option("--gen-len", o.generate.gen_len, "Tokens at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  generate->add_option("--threads", o.generate.threads, "Threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  generate->add_flag("--json", o.generate.json, "Tokens and their margins as one JSON object");

  CLI::App* schema = app.add_subcommand("schema", "Print a JSON Schema");
  schema->add_option("WHAT", o.schema, "plan or record")
      ->required()
      ->check(CLI::IsMember({"plan", "record"}));

  app.add_subcommand("worker", "Serve a run: one case, by bench/run/protocol.md")->group("");
}

int run_as_worker() {
  // A worker in mid-round doesn't see that its stdin was closed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return run_worker(STDIN_FILENO, STDOUT_FILENO);
}

int export_run(const Options& o) {
  RecordFile file = read_records(records_path_of(o.exported));
  if (file.torn) std::cerr << "kvmark: " << *file.torn << ": left out\n";
  const std::vector<nlohmann::ordered_json> rows = latest_rows(std::move(file.records));
  std::cout << (o.format == "csv" ? csv(rows) : markdown(rows));
  return kExitFine;
}

int print(const std::string& text) {
  std::cout << text;
  return kExitFine;
}

int dispatch(const CLI::App& app, Options& o) {
  if (app.got_subcommand("worker")) return run_as_worker();
  if (app.got_subcommand("list")) return print(list(o.topic));
  if (app.got_subcommand("export")) return export_run(o);
  if (app.got_subcommand("schema")) {
    return print((o.schema == "plan" ? plan_schema() : record_schema()).dump(2) + "\n");
  }
  if (app.got_subcommand("generate")) {
    generate(o.generate, std::cout);
    return kExitFine;
  }
  o.run.overrides = overrides_of(*app.get_subcommand("run"), o);
  o.run.plots = !o.no_report;
  return run(o.run, std::cout, std::cerr);
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
  return code == kExitFine ? kExitFailed : code;
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
  Options options;
  options.generate.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  add_run(app, options);
  add_others(app, options);
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
    return flushed(dispatch(app, options));
  } catch (const UsageError& e) {
    std::cout.flush();
    std::cerr << "kvmark: " << e.what() << "\n";
    return kExitUsage;
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
