#include "bench/report/legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "bench/report/format.h"
#include "bench/report/row.h"
#include "bench/report/scaling.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
    {kWrongMark, "wrong (correct), or misses the plan's gate (loss)."},
    {kAboveMark,
     "faster than that read: a cache effect, bytes counted that were not read, or a read that the "
     "machine's other work disturbed."},
    {kPagesAboveMark,
     "shuffled pages were read faster than one piece, which no memory does: one of the two reads "
     "was disturbed, so measure again."},
    {kRoughMark, "of fewer than 6 rounds, so without an interval."},
    {kApartMark,
     "not measured side by side with the row that it is compared with, so a drift of the machine "
     "may be part of the ratio."},
};

constexpr std::string_view kGenericDefinition =
    "generic kernels decode to f32 first; their speed says nothing about other kernels of the same "
    "formats: ";
constexpr std::string_view kWholeRunDefinition =
    "slope: exponent with which the time so far grows with the tokens, over the last half of the "
    "median round: 1 linear, 2 quadratic.";
constexpr std::string_view kOverviewDefinition =
    "tables of formats: medians over rounds; a speed is a ratio of whole steps, appending "
    "included, taken round by round where the two took turns.";

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

// "fp16 = contiguous/f16" for each preset whose name is not the engine's own.
std::string preset_line(Records records) {
  std::vector<std::string> names;
  for (const Json& record : records) {
    const std::string label = engine_label(record);
    const std::string engine = engine_name(record);
    if (label != engine) add_once(names, fmt::format("{} = {}", label, engine));
  }
  return names.empty() ? "" : fmt::format("engines: {}", fmt::join(names, ", "));
}

std::string machine_line(const Json& env) {
  const auto known = [&](const char* key) {
    const Json& value = value_at(env, key);
    return value.is_null() ? "unknown" : text_of(value);
  };
  std::string line = fmt::format("measured on: {}, {} cores, {}, commit {}", known("cpu"),
                                 known("cores"), known("compiler"), known("git"));
  if (value_at(env, "vm") == true) line += ", in a virtual machine";
  const Json& gpu = value_at(env, "gpu");
  if (!gpu.is_null()) line += fmt::format(", {}", text_of(gpu));
  return line;
}

// Those of the columns, each once, as one paragraph.
std::string column_definitions(const std::vector<Section>& sections) {
  std::vector<std::string> definitions;
  for (const Section& section : sections) {
    const bool has_rows = std::any_of(section.rows.begin(), section.rows.end(),
                                      [](const Row& row) { return row.has_figures; });
    for (const Heading& column : section.columns) {
      if (has_rows && !column.definition.empty()) add_once(definitions, column.definition);
    }
  }
  return fmt::format("{}", fmt::join(definitions, " "));
}

bool has_mark(const std::vector<Section>& tables, std::string_view mark) {
  const auto is_marked = [mark](const std::string& text) {
    return text.find(mark) != std::string::npos;
  };
  return std::any_of(tables.begin(), tables.end(), [&](const Section& section) {
    return std::any_of(section.rows.begin(), section.rows.end(), [&](const Row& row) {
      return std::any_of(row.cells.begin(), row.cells.end(), is_marked);
    });
  });
}

bool has_slopes(const std::vector<Section>& sections) {
  return std::any_of(sections.begin(), sections.end(), [](const Section& section) {
    return std::any_of(section.lines.begin(), section.lines.end(), [](const std::string& line) {
      return line.find(kSlope) != std::string::npos;
    });
  });
}

}  // namespace

std::string generic_line(Records records) {
  std::vector<std::string> engines;
  for (const Json& record : records) {
    if (has_figures(record) && is_generic(record)) add_once(engines, engine_name(record));
  }
  return engines.empty() ? "" : fmt::format("{}{}.", kGenericDefinition, fmt::join(engines, ", "));
}

std::vector<std::string> legend(Records records, const Doubts& doubts,
                                const std::vector<Section>& sections,
                                const std::vector<Section>& side_by_side) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (!line.empty()) add_once(lines, std::move(line));
  };
  add(preset_line(records));
  for (const Json& record : records) add(machine_line(value_at(record, "env")));
  for (std::string& line : doubts.lines()) add(std::move(line));
  add(generic_line(records));
  for (std::string& line : scaling_lines(records)) add(std::move(line));
  add(column_definitions(sections));
  if (has_slopes(sections)) add(std::string(kWholeRunDefinition));
  if (!side_by_side.empty()) add(std::string(kOverviewDefinition));
  for (const auto& [mark, definition] : kMarks) {
    if (has_mark(sections, mark) || has_mark(side_by_side, mark)) {
      add(fmt::format("{}: {}", mark, definition));
    }
  }
  return lines;
}

}  // namespace kvmark
