// How the cost of the attention grows with the context and with the batch.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"

namespace kvmark {

// For the rows at attention level that differ in their lengths (or in the batch) and in the number
// of layers alone, three or more of them: a line with the fitted exponent of each engine, and one
// that says what it is. The time is that of a step and layer, so that a plan may hold the working
// set constant by fewer layers at longer contexts.
std::vector<std::string> scaling_lines(Records records);

}  // namespace kvmark
