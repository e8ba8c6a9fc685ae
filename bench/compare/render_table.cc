// For a terminal of 100 columns: the verdict first, then what it is about, the rest as a count.
#include <fmt/format.h>

#include <algorithm>

#include "bench/compare/renderers.h"
#include "bench/compare/wording.h"
#include "bench/report/format.h"

namespace kvmark {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kTitleWidth = 22, kFiguresWidth = 30, kChangeWidth = 11;

// In a job's log "::error …" at the start of a line is a command to the CI system.
std::string no_command(std::string text) {
  for (size_t at = text.find("::"); at != std::string::npos; at = text.find("::", at)) {
    text.replace(at, 2, ": :");
  }
  return text;
}

// Lines of at most kWidth columns, broken between words, each behind `indent` spaces and all but
// the first behind two more.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out, line(indent, ' ');
  bool empty = true;  // the line has no word yet
  const std::string words = no_command(one_line(text));
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string_view word = std::string_view(words).substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (!empty && columns_of(line) + 1 + columns_of(word) > kWidth) {
      out += line + "\n";
      line.assign(indent + 2, ' ');
      empty = true;
    }
    line.append(empty ? "" : " ").append(word);
    empty = false;
  }
  return out + line + "\n";
}

// With the note where it is needed: what is better explains itself.
std::string metric_lines(const MetricComparison& m, bool with_verdict) {
  std::string line = fmt::format("    {} {} {}", pad_right(metric_title(m), kTitleWidth),
                                 pad_right(figures_text(m), kFiguresWidth),
                                 pad_left(change_text(m), kChangeWidth));
  if (with_verdict) line += fmt::format("  {}", verdict_word(m.verdict));
  if (m.threshold) line += fmt::format("  threshold {}", threshold_text(m));
  line.erase(line.find_last_not_of(' ') + 1);
  line += "\n";
  const bool explained = with_verdict || m.verdict != Verdict::better;
  if (explained && !m.note.empty()) line += wrapped(m.note, 6);
  return line;
}

// The metrics that `wanted` takes, below the labels of their cases.
template <typename Wanted>
std::string listed(const Comparison& comparison, bool with_verdict, Wanted wanted) {
  std::string out;
  for (const CaseComparison& c : comparison.cases) {
    bool labelled = false;
    for (const MetricComparison& m : c.metrics) {
      if (!wanted(m)) continue;
      if (!labelled) out += wrapped(c.label, 2);
      labelled = true;
      out += metric_lines(m, with_verdict);
    }
  }
  return out;
}

std::string section(std::string_view title, const std::string& lines) {
  return lines.empty() ? "" : fmt::format("\n{}\n{}", title, lines);
}

std::string with_verdict(const Comparison& comparison, Verdict verdict) {
  return section(verdict_word(verdict), listed(comparison, false, [&](const MetricComparison& m) {
                   return m.verdict == verdict;
                 }));
}

}  // namespace

std::string render_table(const Comparison& comparison, bool strict, bool all) {
  std::string notes, one_sided, statuses;
  for (const std::string& note : comparison.notes) notes += wrapped(note, 2);
  for (const OneSided& one : comparison.one_sided) one_sided += wrapped(one_sided_sentence(one), 2);
  for (const CaseComparison& c : comparison.cases) {
    if (c.base_status == c.status && c.status == "ok") continue;
    statuses += wrapped(c.label, 2) + wrapped(status_sentence(c), 4);
  }
  std::string out = headline(comparison, strict) + "\n" + wrapped("base " + comparison.base, 2) +
                    wrapped("new  " + comparison.now, 2);
  out += section("cases on one side only", one_sided);
  out += section("cases that are not ok", statuses);
  out += section("differences", notes);
  if (all) {
    out += section("every metric",
                   listed(comparison, true, [](const MetricComparison&) { return true; }));
    return out;
  }
  for (const Verdict verdict : {Verdict::worse, Verdict::undecided, Verdict::better}) {
    out += with_verdict(comparison, verdict);
  }
  const Tally tally = tally_of(comparison);
  if (tally.same + tally.shown > 0) {
    out += fmt::format("\nnot listed: {} metrics that are the same, {} that are shown only\n",
                       tally.same, tally.shown);
  }
  return out;
}

}  // namespace kvmark
