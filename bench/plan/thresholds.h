// How much a metric may change before `kvmark compare` calls it worse.
#pragma once

#include <map>
#include <string>

namespace kvmark {

inline constexpr double kLargestThreshold = 10;  // ten times as much again

// A file of thresholds: a map of metric → relative change, as a plan has it under `thresholds`.
// Throws UsageError "file:line:column: …" for what is no metric or no number from 0 to 10.
std::map<std::string, double> read_thresholds(const std::string& path);

// The same by MetricName::path(), as a comparison takes them. Throws UsageError for what is no
// metric, and for two names of one.
std::map<std::string, double> by_path(const std::map<std::string, double>& thresholds);

}  // namespace kvmark
