#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "bench/commands/commands.h"
#include "bench/compare/render.h"
#include "bench/record/whole_file.h"
#include "engines/core/check.h"

namespace kvmark {

void ComparisonFlags::add_to(CLI::App& command) {
  const std::vector<std::string> formats(render_formats().begin(), render_formats().end());
  command.add_flag("--strict", strict_, "What is undecided is an error (5)");
  command.add_flag("--all", all_, "List every metric of every case");
  command.add_option("--format", format_, fmt::format("{}", fmt::join(formats, ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(formats));
  command.add_option("--out", outputs_, "Write this form to a file as well; repeatable")
      ->type_name("FORMAT=FILE")
      ->allow_extra_args(false);
}

void ComparisonFlags::check(const std::vector<std::string>& inputs) const {
  namespace fs = std::filesystem;
  std::set<fs::path> taken;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    for (const fs::path& file : {fs::path(input), fs::path(input) / "records.jsonl"}) {
      taken.insert(resolved(file));
    }
  }
  for (const Output& file : outputs()) {
    check_writable(file.path);
    if (!taken.insert(resolved(file.path)).second) {
      throw UsageError(fmt::format(
          "--out {}={}: this file is read, or written by another --out; expected a file "
          "of its own",
          file.format, file.path));
    }
  }
}

std::vector<ComparisonFlags::Output> ComparisonFlags::outputs() const {
  std::vector<Output> all;
  const auto formats = render_formats();
  for (const std::string& text : outputs_) {
    const size_t equals = std::min(text.find('='), text.size());
    Output output{text.substr(0, equals), text.substr(std::min(equals + 1, text.size()))};
    if (output.path.empty() ||
        std::find(formats.begin(), formats.end(), output.format) == formats.end()) {
      throw UsageError(fmt::format("--out {}: expected FORMAT=FILE, FORMAT one of: {}", text,
                                   fmt::join(formats, ", ")));
    }
    all.push_back(std::move(output));
  }
  return all;
}

int ComparisonFlags::show(const Comparison& comparison) const {
  ExitCode code = exit_code_of(comparison, strict_);
  std::cout << render(comparison, format_, strict_, all_) << std::flush;
  for (const Output& file : outputs()) {
    try {
      write_whole(file.path, render(comparison, file.format, strict_, all_));
    } catch (const RuntimeError& e) {
      std::cerr << "kvmark: " << e.what() << "\n";
      code = worst_of({code, kExitFailed});
    }
  }
  return code;
}

}  // namespace kvmark
