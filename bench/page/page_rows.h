// Records → the rows that the page shows.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/page/figures.h"
#include "bench/page/page_data.h"
#include "bench/report/doubts.h"

namespace kvmark {

// {"groups", "rows"}: rows in the order of the content, and the headings of the groups that they
// name by number. A row holds its case, its figures with their intervals and counts, its lists
// thinned out, and, for the rows that took turns with it, how its speed compares round by round.
nlohmann::ordered_json rows_json(const PageContent& content, const std::vector<Figure>& figures,
                                 const Doubts& doubts);

}  // namespace kvmark
