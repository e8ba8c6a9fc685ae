// A comparison in words: what all forms of output say alike.
#pragma once

#include <string>
#include <string_view>

#include "bench/compare/comparison.h"

namespace kvmark {

struct Tally {
  int broke = 0, vanished = 0;                                    // cases
  int worse = 0, undecided = 0, better = 0, same = 0, shown = 0;  // metrics
};
Tally tally_of(const Comparison& comparison);

// "regression: 1 metric worse, 2 better, 40 same; 3 cases".
std::string headline(const Comparison& comparison, bool strict);

// "worse", "same", …
std::string_view verdict_word(Verdict verdict);

// The title of the field with the part of a summary: "TPOT p50". A metric that the table does not
// know is called by its path.
std::string metric_title(const MetricComparison& metric);

// "1.234 ms" of each side, written as in figures_text().
struct SideTexts {
  std::string base, now;
};
SideTexts side_texts(const MetricComparison& metric);

// "1.234 → 1.402 ms"; — for a side without a figure. Where two different figures would look alike
// they are given in full.
std::string figures_text(const MetricComparison& metric);

// "+13.6 %", with the interval where there is one: "+13.6 % [11.0, 16.2]"; "" where it is unknown,
// and of what is true or false.
std::string change_text(const MetricComparison& metric);

// "10 %", "0.5 %"; "any" for a threshold of 0; "" without one.
std::string threshold_text(const MetricComparison& metric);

// All of it in one line: "TPOT p50: 1.234 → 1.402 ms, +13.6 %, threshold 10 %; 3σ of 12 runs".
std::string sentence(const MetricComparison& metric);

// "ok → failed: killed by SIGKILL".
std::string status_sentence(const CaseComparison& comparison);

// "only in the base: …", with the reason.
std::string one_sided_sentence(const OneSided& one);

// Line breaks as spaces.
std::string one_line(std::string_view text);

// Bytes that are not UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace kvmark
