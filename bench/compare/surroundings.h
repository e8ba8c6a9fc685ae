// Where and with what two runs were made, and what of it differs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvmark {

// A case's row on both sides.
struct RowPair {
  const nlohmann::ordered_json* base;
  const nlohmann::ordered_json* now;
};

// The same processor (or none that the systems name), as many cores and the same GPU: times can be
// held against each other.
bool same_machine(const RowPair& pair);

// "AMD EPYC with 2 cores", with a GPU "… and NVIDIA H100".
std::string machine_of(const nlohmann::ordered_json& row);

// "cpu: A → B", a line for each key of the environment, and of what a row was computed and judged
// with, in which a pair differs, those that move times by themselves first and marked; then what
// made times doubtful on each side.
std::vector<std::string> differences(const std::vector<RowPair>& pairs);

// The commits of the rows: "abc123" or "abc123, def456-dirty".
std::string commits(const std::vector<const nlohmann::ordered_json*>& rows);

}  // namespace kvmark
