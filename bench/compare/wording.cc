#include "bench/compare/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/format.h"
#include "bench/report/report.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

// What the exit code means, for people.
std::string_view meaning(ExitCode code) {
  switch (code) {
    case kExitRegression:
      return "regression";
    case kExitFailed:
      return "a case that was ok fails";
    case kExitInvalid:
      return "a case that was ok is invalid";
    case kExitUndecided:
      return "undecided";
    default:
      return "no regression found";
  }
}

// All digits that the figure has, without an exponent where it is a whole number.
std::string full_number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.9g}", value);
}

std::string percent(double fraction) {
  const double value = std::abs(100 * fraction);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return value >= 0.01 || value == 0 ? fmt::format("{:.2f}", value) : fmt::format("{:.1e}", value);
}

std::string signed_percent(double fraction) {
  return fmt::format("{}{}", fraction < 0 ? "−" : "+", percent(fraction));
}

bool is_yes_or_no(const MetricComparison& metric) {
  return metric.field && metric.field->type == RecordFieldType::boolean;
}

// Both sides without a unit that they share, and that unit.
struct WithUnit {
  SideTexts sides;
  std::string unit;
};

WithUnit sides_with_unit(const MetricComparison& metric) {
  const std::string_view unit = metric.field ? metric.field->unit : "";
  const bool bytes = unit == "bytes";
  const auto text = [&](const std::optional<double>& value, bool full) -> std::string {
    if (!value) return std::string(kNothing);
    if (is_yes_or_no(metric)) return *value != 0 ? "true" : "false";
    if (full) return full_number(*value);
    return bytes ? human_bytes(*value) : human_number(*value);
  };
  const bool full = metric.base && metric.now && *metric.base != *metric.now &&
                    text(metric.base, false) == text(metric.now, false);
  const bool with_unit = !unit.empty() && (!bytes || full);  // human_bytes() brings its own
  return {{text(metric.base, full), text(metric.now, full)},
          with_unit ? fmt::format(" {}", unit) : ""};
}

}  // namespace

Tally tally_of(const Comparison& comparison) {
  Tally tally;
  for (const CaseComparison& c : comparison.cases) {
    tally.broke += c.broke();
    tally.vanished += c.vanished();
    for (const MetricComparison& m : c.metrics) {
      switch (m.verdict) {
        case Verdict::worse:
          ++tally.worse;
          break;
        case Verdict::undecided:
          ++tally.undecided;
          break;
        case Verdict::better:
          ++tally.better;
          break;
        case Verdict::same:
          ++tally.same;
          break;
        case Verdict::shown:
          ++tally.shown;
          break;
      }
    }
  }
  for (const OneSided& one : comparison.one_sided) tally.vanished += one.vanished;
  return tally;
}

std::string headline(const Comparison& comparison, bool strict) {
  if (comparison.cases.empty()) return "nothing to compare: no case is on both sides";
  if (!anything_compared(comparison)) {
    return fmt::format("nothing to compare: none of {} has figures to judge on both sides",
                       counted(comparison.cases.size(), "case"));
  }
  const Tally tally = tally_of(comparison);
  std::vector<std::string> parts;
  const auto add = [&](int n, std::string_view words) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, words));
  };
  if (tally.broke > 0) parts.push_back(counted(tally.broke, "case") + " broken");
  if (tally.vanished > 0) parts.push_back(counted(tally.vanished, "case") + " missing");
  add(tally.worse, "worse");
  add(tally.undecided, "undecided");
  add(tally.better, "better");
  add(tally.same, "same");
  return fmt::format("{}: {}{}{}{}", meaning(exit_code_of(comparison, strict)),
                     fmt::join(parts, ", "), parts.empty() ? "" : "; ",
                     counted(comparison.cases.size(), "case"),
                     comparison.of_one_run ? "; both sides are the same run" : "");
}

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "same";
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::undecided:
      return "undecided";
    case Verdict::shown:
      return "shown";
  }
  return "";
}

std::string metric_title(const MetricComparison& metric) {
  if (metric.field == nullptr) return metric.metric;
  std::string title(metric.field->title);
  if (metric.metric.size() > metric.field->path.size()) {
    title.append(" ").append(metric.metric, metric.field->path.size() + 1);
  }
  return title;
}

SideTexts side_texts(const MetricComparison& metric) {
  const auto [sides, unit] = sides_with_unit(metric);
  return {sides.base + (metric.base ? unit : ""), sides.now + (metric.now ? unit : "")};
}

std::string figures_text(const MetricComparison& metric) {
  const auto [sides, unit] = sides_with_unit(metric);
  return fmt::format("{} → {}{}", sides.base, sides.now, unit);
}

std::string change_text(const MetricComparison& metric) {
  if (!metric.change || is_yes_or_no(metric)) return "";
  std::string text = signed_percent(*metric.change) + " %";
  if (const auto& interval = metric.change_interval) {
    text +=
        fmt::format(" [{}, {}]", signed_percent((*interval)[0]), signed_percent((*interval)[1]));
  }
  return text;
}

std::string threshold_text(const MetricComparison& metric) {
  if (!metric.threshold) return "";
  return *metric.threshold == 0 ? "any" : fmt::format("{:.3g} %", 100 * *metric.threshold);
}

std::string sentence(const MetricComparison& metric) {
  std::string text = fmt::format("{}: {}", metric_title(metric), figures_text(metric));
  if (const std::string change = change_text(metric); !change.empty()) {
    text.append(", ").append(change);
  }
  if (metric.threshold) {
    text += *metric.threshold == 0 ? ", any change counts"
                                   : fmt::format(", threshold {}", threshold_text(metric));
  }
  if (!metric.note.empty()) text.append("; ").append(one_line(metric.note));
  return text;
}

std::string status_sentence(const CaseComparison& c) {
  return fmt::format("{} → {}{}{}", c.base_status, c.status, c.reason.empty() ? "" : ": ",
                     one_line(c.reason));
}

std::string one_sided_sentence(const OneSided& one) {
  return fmt::format("{}only in the {}: {}{}{}", one.vanished ? "missing, " : "",
                     one.in_base ? "base" : "new run", one_line(one.label),
                     one.reason.empty() ? "" : ": ", one_line(one.reason));
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return line;
}

std::string valid_utf8(std::string_view text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace kvmark
