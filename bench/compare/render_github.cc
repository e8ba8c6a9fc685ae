// Annotations of GitHub Actions: commands on stdout, `::error title=TITLE::TEXT`.
#include <fmt/format.h>

#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"

namespace kvmark {
namespace {

// A step shows this many annotations of a level and drops the rest.
constexpr size_t kShownOfLevel = 10;

// As the runner reads commands back: in the text % and line ends, in properties : and , too.
std::string escaped(std::string_view text, std::string_view more = "") {
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '\n' || c == '\r' || more.find(c) != std::string_view::npos) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

struct Annotation {
  std::string title, text;
};

std::string annotations(std::string_view level, const std::vector<Annotation>& found) {
  std::string out;
  const auto add = [&](std::string_view title, std::string_view text) {
    out += fmt::format("::{} title={}::{}\n", level, escaped(title, ":,"), escaped(text));
  };
  const bool too_many = found.size() > kShownOfLevel;
  const size_t shown = too_many ? kShownOfLevel - 1 : found.size();
  for (size_t i = 0; i < shown; ++i) add(found[i].title, found[i].text);
  if (too_many) {
    add("kvmark", fmt::format("{} more of this kind; the table lists them", found.size() - shown));
  }
  return out;
}

}  // namespace

std::string render_github(const Comparison& comparison, bool strict) {
  // The gravest first: what comes later may not be shown.
  std::vector<Annotation> errors, warnings, worse;
  for (const CaseComparison& c : comparison.cases) {
    if (c.broke()) errors.push_back({c.label + " broke", status_sentence(c)});
    if (c.vanished()) {
      (strict ? errors : warnings).push_back({c.label + " is skipped", status_sentence(c)});
    }
    for (const MetricComparison& m : c.metrics) {
      const Annotation annotation{fmt::format("{}: {}", c.label, verdict_word(m.verdict)),
                                  sentence(m)};
      if (m.verdict == Verdict::worse) worse.push_back(annotation);
      if (m.verdict == Verdict::undecided) (strict ? worse : warnings).push_back(annotation);
    }
  }
  errors.insert(errors.end(), worse.begin(), worse.end());
  const Annotation verdict{"kvmark", headline(comparison, strict)};
  if (exit_code_of(comparison, false) == kExitUndecided) errors.push_back(verdict);
  for (const OneSided& one : comparison.one_sided) {
    (strict && one.vanished ? errors : warnings).push_back({"kvmark", one_sided_sentence(one)});
  }
  std::vector<Annotation> notices{verdict};
  for (const std::string& note : comparison.notes) notices.push_back({"kvmark", note});
  return annotations("error", errors) + annotations("warning", warnings) +
         annotations("notice", notices);
}

}  // namespace kvmark
