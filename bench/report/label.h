// What a row is called where it stands alone.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kvmark {

// "paged:16/f32 seed-gqa model at 512+128, 2 threads": engine, model, level, prompt and generated
// tokens, and what else often tells cases apart.
std::string row_label(const nlohmann::ordered_json& record);

// The labels of the rows; where two cases would have the same one, with the start of their ids.
std::vector<std::string> row_labels(std::span<const nlohmann::ordered_json* const> rows);

}  // namespace kvmark
