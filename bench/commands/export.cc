#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/commands/commands.h"
#include "bench/record/exit_code.h"
#include "bench/record/whole_file.h"
#include "bench/report/gha.h"
#include "bench/report/report.h"
#include "bench/run/run_folder.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

struct ExportRequest {
  std::string run, format = "csv";
  std::string folder;  // of gha
};

int write_gha(Records rows, const std::string& folder) {
  const GhaFiles files = gha(rows);
  const auto write = [&](const char* name, const nlohmann::ordered_json& entries) {
    const std::string path = fmt::format("{}/{}", folder, name);
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    write_whole(path, entries.dump(2, ' ', false, kReplace) + "\n");
    std::cerr << fmt::format("{} entries: {}\n", entries.size(), path);
  };
  write("smaller-is-better.json", files.smaller);
  write("bigger-is-better.json", files.bigger);
  return kExitFine;
}

int export_run(const ExportRequest& request) {
  if ((request.format == "gha") != !request.folder.empty()) {
    throw UsageError(
        "--format gha writes two files into the folder -o DIR; csv and md go to stdout");
  }
  std::error_code error;
  if (std::filesystem::exists(request.folder, error) &&
      !std::filesystem::is_directory(request.folder, error)) {
    throw UsageError(
        fmt::format("-o {}: is no folder; expected one for two files", request.folder));
  }
  const RunRows run = read_run(request.run);
  if (run.torn) std::cerr << "kvmark: " << *run.torn << "\n";
  if (request.format == "gha") return write_gha(run.rows, request.folder);
  return print(request.format == "csv" ? csv(run.rows) : markdown(run.rows));
}

}  // namespace

Command add_export(CLI::App& kvmark) {
  const auto o = std::make_shared<ExportRequest>();
  CLI::App* exported = kvmark.add_subcommand("export", "Give the rows of a run to other tools");
  exported->add_option("RUN", o->run, "A run's folder, or its records.jsonl")->required();
  exported->add_option("--format", o->format, "csv, md, or gha: for github-action-benchmark")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "md", "gha"}));
  exported->add_option("-o,--output", o->folder, "Folder of the two files of gha")
      ->type_name("DIR");
  return {exported, [o] { return export_run(*o); }};
}

}  // namespace kvmark
