#include "bench/report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/report.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// `digits` significant digits in decimal notation; all digits before the point.
std::string fixed_digits(double value, int digits) {
  // Of the rounded value: 0.9999 has the magnitude of 1.
  const std::string rounded = fmt::format("{:.{}e}", value, digits - 1);
  const int magnitude = std::stoi(rounded.substr(rounded.find('e') + 1));
  return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - magnitude));
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string human_number(double value) {
  if (!std::isfinite(value)) return std::string(kNothing);
  if (value != 0 && std::abs(value) < 1e-3) return fmt::format("{:.2e}", value);
  return fixed_digits(value, 4);
}

std::string rough_number(double value) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.0f}", value);
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 1);
  return fixed_digits(unit > 1 ? std::round(value / unit) * unit : value, 2);
}

std::string counted(size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string human_error(double value) { return value == 0 ? "0" : fmt::format("{:.1e}", value); }

std::string human_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  // 1023.9 KiB would round to four digits.
  while (std::abs(bytes) >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  if (bytes == std::floor(bytes)) return fmt::format("{:.0f} {}", bytes, kUnits[unit]);
  return fmt::format("{} {}", fixed_digits(bytes, 3), kUnits[unit]);
}

const Json& value_at(const Json& record, std::string_view path) {
  static const Json null;
  const Json* at = &record;
  while (true) {
    if (!at->is_object()) return null;
    const size_t dot = path.find('.');
    const auto it = at->find(path.substr(0, dot));
    if (it == at->end()) return null;
    if (dot == std::string_view::npos) return *it;
    at = &*it;
    path.remove_prefix(dot + 1);
  }
}

std::optional<std::array<double, 2>> interval_at(const nlohmann::ordered_json& record,
                                                 std::string_view path) {
  const auto& value = value_at(record, path);
  if (!value.is_array() || value.size() != 2) return std::nullopt;
  if (!value[0].is_number() || !value[1].is_number()) return std::nullopt;
  return std::array{value[0].get<double>(), value[1].get<double>()};
}

size_t columns_of(std::string_view text) {
  return text.size() - std::count_if(text.begin(), text.end(), continues);
}

std::string clip(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; kept + 1 < columns; ++kept) {
    ++end;
    while (end < text.size() && continues(text[end])) ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string pad_left(std::string_view text, size_t columns) {
  const size_t width = columns_of(text);
  return std::string(columns > width ? columns - width : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, size_t columns) {
  const size_t width = columns_of(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

}  // namespace kvmark
