// What the rows at attention level say together.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "bench/report/section.h"

namespace kvmark {

// A table for each of: the part of the read ceiling, and of that for shuffled pages; the speed
// against the first engine of all; that of pages against one piece in the same format; that
// of shuffled pages against fresh ones; that of more threads against the fewest. A row a setting
// (what varies of it) and layout, a column a format. Of rows with enough rounds for an interval of
// the median alone; a table that would say nothing is left out. Speeds of one group are ratios
// round by round, since these were taken in turns; others are ratios of medians, and marked.
std::vector<Section> overview(Records records);

}  // namespace kvmark
