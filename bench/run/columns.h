// Plain text in columns.
#pragma once

#include <string>
#include <vector>

namespace kvmark {

// Rows of equally many cells, one line each; every column but the last is padded to its widest
// cell. Cells are ASCII.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace kvmark
