// A table of the report, and how it looks on a terminal and in Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/report/row.h"

namespace kvmark {

struct Heading {
  std::string title, unit;
  std::string definition;  // for the legend; "": needs none
};

struct Section {
  std::string heading;
  std::string baseline;  // what stands below the heading; "": nothing
  std::vector<Heading> columns;
  std::vector<Row> rows;
  std::vector<std::string> lines;  // below the rows
};

// For a terminal: the first column to the left, the others to the right; a row without figures is
// followed by its note.
std::string render(const Section& section);
std::string markdown_of(const Section& section);
// The text in lines of a terminal's width, broken between words; further lines are indented.
std::string wrapped(std::string_view text);

}  // namespace kvmark
