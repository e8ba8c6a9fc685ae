// Records → the JSON that the page shows: its only knowledge of runs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"

namespace kvmark {

struct PageRun {
  std::string name;                       // as the user called it
  size_t rows = 0;                        // how many of the page's rows are its own
  nlohmann::ordered_json plan = nullptr;  // its plan.json; null: it has none
};

// What a page is about.
struct PageContent {
  std::vector<PageRun> runs;
  std::vector<nlohmann::ordered_json> rows;  // those of the first run, of the second, …
  std::optional<Comparison> comparison;      // of the first run with the second
};

// "kvmark-page/1": what the runs, their rows and the comparison hold, with titles, units and
// definitions from the metrics table. Lists are thinned out; figures stand as they are recorded.
nlohmann::ordered_json page_data(const PageContent& content);

// The names of the plans, or of the runs where these have none.
std::string page_title(const PageContent& content);

}  // namespace kvmark
