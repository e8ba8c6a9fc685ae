// What stands below the tables: where they were measured, what disturbed them, what the columns and
// marks that are there mean.
#pragma once

#include <string>
#include <vector>

#include "bench/report/doubts.h"
#include "bench/report/report.h"
#include "bench/report/section.h"

namespace kvmark {

// `sections`: the tables of rows; `side_by_side`: those of the overview. Of definitions only those
// that a reader of these tables needs.
std::vector<std::string> legend(Records records, const Doubts& doubts,
                                const std::vector<Section>& sections,
                                const std::vector<Section>& side_by_side);

// Which engines were computed by generic kernels, and what that means; "" where there are none.
std::string generic_line(Records records);

}  // namespace kvmark
