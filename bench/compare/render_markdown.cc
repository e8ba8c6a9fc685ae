// For a step summary or a comment: GitHub's Markdown.
#include <fmt/format.h>

#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"

namespace kvmark {
namespace {

// Text that is shown as it is, in a table's cell too.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      if (std::string_view("\\`*_|[]~").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string_view mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::worse:
      return "❌ ";
    case Verdict::undecided:
      return "❔ ";
    case Verdict::better:
      return "✅ ";
    default:
      return "";
  }
}

std::string row(const CaseComparison& c, const MetricComparison& m) {
  return fmt::format("| {}{} | {} | {} | {} | {} | {} | {} |\n", mark(m.verdict),
                     verdict_word(m.verdict), plain(c.label), plain(metric_title(m)),
                     plain(figures_text(m)), plain(change_text(m)), threshold_text(m),
                     plain(m.note));
}

constexpr std::string_view kHead =
    "\n| verdict | case | metric | base → new | change | threshold | how |\n"
    "|---|---|---|--:|--:|--:|---|\n";

template <typename Wanted>
std::string rows(const Comparison& comparison, Wanted wanted) {
  std::string out;
  for (const CaseComparison& c : comparison.cases) {
    for (const MetricComparison& m : c.metrics) {
      if (wanted(m)) out += row(c, m);
    }
  }
  return out;
}

std::string bullets(std::string_view title, const std::string& lines) {
  return lines.empty() ? "" : fmt::format("\n**{}**\n\n{}", title, lines);
}

std::string found(const Comparison& comparison, bool all) {
  if (all) return rows(comparison, [](const MetricComparison&) { return true; });
  std::string out;
  for (const Verdict verdict : {Verdict::worse, Verdict::undecided, Verdict::better}) {
    out += rows(comparison, [&](const MetricComparison& m) { return m.verdict == verdict; });
  }
  return out;
}

}  // namespace

std::string render_markdown(const Comparison& comparison, bool strict, bool all) {
  std::string notes, one_sided, statuses;
  for (const std::string& note : comparison.notes) notes += fmt::format("- {}\n", plain(note));
  for (const OneSided& one : comparison.one_sided) {
    one_sided += fmt::format("- {}\n", plain(one_sided_sentence(one)));
  }
  for (const CaseComparison& c : comparison.cases) {
    if (c.base_status == c.status && c.status == "ok") continue;
    statuses += fmt::format("- {}{}: {}\n", c.broke() ? "❌ " : "", plain(c.label),
                            plain(status_sentence(c)));
  }
  std::string out = fmt::format("### {} kvmark: {}\n\nbase: {}  \nnew: {}\n",
                                exit_code_of(comparison, strict) == kExitFine ? "✅" : "❌",
                                plain(headline(comparison, strict)), plain(comparison.base),
                                plain(comparison.now));
  out += bullets("Cases on one side only", one_sided);
  out += bullets("Cases that are not ok", statuses);
  out += bullets("Differences", notes);
  const std::string table = found(comparison, all);
  if (!table.empty()) out += std::string(kHead) + table;
  const Tally tally = tally_of(comparison);
  if (!all && tally.same + tally.shown > 0) {
    out += fmt::format("\n{} metrics are the same; {} are shown only and not listed.\n", tally.same,
                       tally.shown);
  }
  return out;
}

}  // namespace kvmark
