// The figures of earlier runs: how much separate runs of a machine differ, and where a figure
// stands among them. A file of lines, one for each row of each run.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvmark {

inline constexpr const char* kHistorySchema = "kvmark-history/1";

// Runs that are looked back at, and the fewest that say how much runs differ.
inline constexpr size_t kHistoryRuns = 20;
inline constexpr size_t kFewestHistoryRuns = 5;

// What is kept of a record: run, case and label, when and with what it was made, and every figure
// that a comparison may decide by. Null where the row has no figures.
nlohmann::ordered_json history_line(const nlohmann::ordered_json& record);

// Appends the lines of the rows, as append_json_line(). A row that is appended again counts once.
void append_history(const std::string& path, std::span<const nlohmann::ordered_json> rows);

class History {
 public:
  History() = default;
  // Throws UsageError as read_json_lines(); a torn last line is left out and told in `torn`.
  static History read(const std::string& path);

  // A figure ("latency.tpot_ms.p50") in the newest kHistoryRuns runs of the row's case on the same
  // CPU, SIMD target and compiler, oldest first, as the lines stand. The row's own run is left out.
  std::vector<double> figures(const nlohmann::ordered_json& row, std::string_view metric) const;

  std::optional<std::string> torn;

 private:
  struct Entry {
    std::string run_id;
    nlohmann::ordered_json figures;
  };
  std::map<std::string, std::vector<Entry>> entries_;  // by case and machine
};

// σ of the log ratio of two runs, from the log ratios of neighbours: 1.4826 times the median of
// their absolute values. A wild run is two of them, a change that came to stay is one: neither
// widens it. Nothing for fewer than kFewestHistoryRuns figures, or one that is not positive.
std::optional<double> run_scatter(std::span<const double> figures);

}  // namespace kvmark
