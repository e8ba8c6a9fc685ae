#include "bench/report/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/report/format.h"

namespace kvmark {
namespace {

constexpr size_t kWidth = 140;     // of a terminal that most have
constexpr size_t kLeastNote = 20;  // of a reason, however long the engine's name

std::vector<size_t> widths_of(const Section& section) {
  std::vector<size_t> widths;
  for (const Heading& column : section.columns) {
    widths.push_back(std::max(columns_of(column.title), columns_of(column.unit)));
  }
  for (const Row& row : section.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row.cells[i]));
    }
  }
  return widths;
}

// Engine names to the left, figures to the right.
std::string line_of(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line = pad_right(cells[0], widths[0]);
  for (size_t i = 1; i < cells.size(); ++i)
    line += fmt::format("  {}", pad_left(cells[i], widths[i]));
  return line;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text) {
  std::string out, line;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > kWidth) {
      out.append(line).append("\n");
      line.assign(1, ' ');  // gcc 12 warns of an assigned literal
    }
    if (!line.empty()) line += " ";
    line += word;
  }
  return out + line + "\n";
}

std::string render(const Section& section) {
  const std::vector<size_t> widths = widths_of(section);
  std::vector<std::string> titles, units;
  size_t total = 0;
  for (size_t i = 0; i < section.columns.size(); ++i) {
    titles.emplace_back(section.columns[i].title);
    units.emplace_back(section.columns[i].unit);
    total += widths[i] + (i > 0 ? 2 : 0);
  }
  std::string rule;
  for (size_t i = 0; i < total; ++i) rule += "─";

  std::string out = wrapped(section.heading);
  if (!section.baseline.empty()) out += section.baseline + "\n";
  out += trimmed(line_of(titles, widths));
  const bool has_units = std::any_of(units.begin(), units.end(),
                                     [](const std::string& unit) { return !unit.empty(); });
  if (has_units) out += trimmed(line_of(units, widths));
  out += rule + "\n";
  for (const Row& row : section.rows) {
    std::string line = line_of(row.cells, widths);
    if (!row.has_figures) {
      const size_t used = columns_of(line) + 2, limit = std::max(kWidth, total);
      const size_t room = std::max(kLeastNote, limit - std::min(limit, used));
      line += fmt::format("  {}", clip(row.note, room));
    }
    out += trimmed(std::move(line));
  }
  for (const std::string& line : section.lines) out += wrapped(line);
  return out;
}

std::string markdown_of(const Section& section) {
  std::string out = fmt::format("**{}**", section.heading);
  if (!section.baseline.empty()) out += fmt::format("; {}", section.baseline);
  out += "\n\n|";
  for (const Heading& column : section.columns) {
    out += column.unit.empty() ? fmt::format(" {} |", column.title)
                               : fmt::format(" {}, {} |", column.title, column.unit);
  }
  out += "\n|:---|";
  for (size_t i = 1; i < section.columns.size(); ++i) out += "---:|";
  out += "\n";
  for (const Row& row : section.rows) {
    out += "|";
    for (const std::string& cell : row.cells) out += fmt::format(" {} |", escaped(cell));
    if (!row.has_figures) {
      out += fmt::format(" {} |", escaped(row.note));
      for (size_t i = row.cells.size() + 1; i < section.columns.size(); ++i) out += " |";
    }
    out += "\n";
  }
  for (const std::string& line : section.lines) out += fmt::format("\n{}\n", line);
  return out;
}

}  // namespace kvmark
