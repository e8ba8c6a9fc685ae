// Numbers and text as people read them; the same in every locale.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kvmark {

inline constexpr std::string_view kNothing = "—";  // what null looks like

// Four significant digits without an exponent from 0.001 up (12345, 123.4, 0.01234), three with one
// below; kNothing for what is no finite number.
std::string human_number(double value);
// Two significant digits: 137.2 → 140, 46.2 → 46, 1.04 → 1.0.
std::string rough_number(double value);

// "1 round", "3 rounds".
std::string counted(size_t n, std::string_view noun);

// 0.031 → 3.1e-02; 0 → 0.
std::string human_error(double value);

// The value at a dotted path, or null where any part is missing.
const nlohmann::ordered_json& value_at(const nlohmann::ordered_json& record, std::string_view path);

// Both ends of the interval at a dotted path; nothing where there are no two numbers.
std::optional<std::array<double, 2>> interval_at(const nlohmann::ordered_json& record,
                                                 std::string_view path);

// Characters of a UTF-8 text, each of them one column wide.
size_t columns_of(std::string_view text);
// The first `columns` characters, the last of them … where something was cut.
std::string clip(std::string_view text, size_t columns);
std::string pad_left(std::string_view text, size_t columns);
std::string pad_right(std::string_view text, size_t columns);

}  // namespace kvmark
