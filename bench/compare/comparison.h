// What came of comparing two runs, or two builds: a verdict for each case and metric. `kvmark
// compare` and `kvmark ab` fill it, render.h shows it, exit_code_of() decides.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/record/exit_code.h"
#include "bench/record/metrics.h"

namespace kvmark {

// same: no difference beyond the threshold. better, worse: one. undecided: the data carry neither.
// shown: a figure to read, never to decide by.
enum class Verdict { same, better, worse, undecided, shown };

struct MetricComparison {
  std::string metric;                  // path, with the part of a summary: "latency.tpot_ms.p50"
  const RecordField* field = nullptr;  // of the path: title, unit, direction, exact or noisy
  std::optional<double> base, now;     // in the field's unit; nothing: that side lacks it
  std::optional<double> change;  // now/base − 1, or as ab estimates it; nothing where base is 0
  std::optional<std::array<double, 2>> change_interval;  // what it holds with stands in `note`
  std::optional<double> threshold;                       // of |change|, beyond which it counts
  bool raised = false;  // the threshold, by how much earlier runs differ
  Verdict verdict = Verdict::shown;
  std::string note;  // how it was decided, in words: "3σ of 12 earlier runs"
};

struct CaseComparison {
  std::string case_id;
  std::string label;                // engine and setting
  nlohmann::ordered_json spec;      // the record's `case`
  std::string base_status, status;  // of both rows
  bool base_counts = false;         // that row has figures: it is ok, or misses its gate only
  bool counts = false;              // the new one has
  std::string reason;               // of the new row where it is not ok
  std::vector<MetricComparison> metrics;

  // Was ok and is failed or invalid; or only missed its gate, and has no figures any more.
  bool broke() const {
    const bool bad = status == "failed" || status == "invalid";
    return bad && (base_status == "ok" || (base_counts && !counts));
  }
  // Was ok and is skipped: nothing is known of it.
  bool vanished() const { return base_status == "ok" && status == "skipped"; }
};

// A case that only one side knows.
struct OneSided {
  std::string label, reason;
  bool in_base = false;
  bool vanished = false;  // was ok in the base, and the new side should have it
};

struct Comparison {
  std::string base, now;           // what was compared: runs, or builds with their commits
  std::vector<std::string> notes;  // differences of environment, what is unknown, what was repeated
  std::vector<OneSided> one_sided;
  std::vector<CaseComparison> cases;
  bool of_one_run = false;  // both sides are the same run
  bool times_lost = false;  // times were to be compared, and of no row they were
};

// A metric was judged, or a case broke: there is something to decide by.
bool anything_compared(const Comparison& comparison);

// The worst of: a case that is invalid now (4), or failed now (3), and was ok; a metric that is
// worse (1); nothing compared, because no case is on both sides or none has figures on both, or all
// times were lost (5); with `strict` a metric that is undecided, or a case that was ok and is
// skipped or vanished (5). Else 0. What was already failed or invalid in the base is no fault of
// the new side.
ExitCode exit_code_of(const Comparison& comparison, bool strict);

}  // namespace kvmark
