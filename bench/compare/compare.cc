#include "bench/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "bench/compare/judge.h"
#include "bench/compare/surroundings.h"
#include "bench/report/format.h"
#include "bench/report/label.h"
#include "bench/report/row.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const Json*>;

std::string id_of(const Json& row) { return text_of(value_at(row, "case_id")); }

struct Paired {
  std::vector<RowPair> pairs;  // in the order of the new run
  Rows only_base, only_now;
};

// An id stands for its case. What one version writes out and the other leaves to a default cannot
// differ, so that only keys of both count.
void check_same_case(const RowPair& pair) {
  const Json &base = value_at(*pair.base, "case"), &now = value_at(*pair.now, "case");
  if (!base.is_object() || !now.is_object()) return;
  for (const auto& [key, value] : now.items()) {
    const auto other = base.find(key);
    if (key == "preset" || key == "gate" || other == base.end() || *other == value) continue;
    throw UsageError(
        fmt::format("case {}: `{}` is {} in the base and {} in the new run under the same case_id; "
                    "expected records as they were written",
                    id_of(*pair.now), key, text_of(*other), text_of(value)));
  }
}

Paired pair_rows(const ComparedRun& base, const ComparedRun& now) {
  std::unordered_map<std::string, const Json*> of_base;
  for (const Json& row : base.rows) of_base.emplace(id_of(row), &row);
  Paired paired;
  for (const Json& row : now.rows) {
    const auto partner = of_base.find(id_of(row));
    if (partner == of_base.end()) {
      paired.only_now.push_back(&row);
    } else {
      paired.pairs.push_back({partner->second, &row});
      check_same_case(paired.pairs.back());
      of_base.erase(partner);
    }
  }
  for (const Json& row : base.rows) {
    if (of_base.count(id_of(row)) > 0) paired.only_base.push_back(&row);
  }
  return paired;
}

// The case but for its threads, which follow the machine where a plan doesn't give them.
std::string key_without_threads(const Json& row) {
  Json spec = value_at(row, "case");
  if (spec.is_object()) spec.erase("threads");
  return spec.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The rows of one side that `others` lack, with the reason where it is the number of threads.
// `planned`: case ids that the other side was to have; where they are unknown, all of them.
void add_one_sided(const Rows& rows, const Rows& others, bool in_base,
                   const std::set<std::string>& planned, std::vector<OneSided>& one_sided) {
  std::unordered_map<std::string, const Json*> near;
  for (const Json* other : others) near.emplace(key_without_threads(*other), other);
  const std::vector<std::string> labels = row_labels(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto it = near.find(key_without_threads(*rows[i]));
    const bool missing = planned.count(id_of(*rows[i])) > 0;
    std::string reason;
    if (missing) {
      reason = "the other side planned it and has no row of it";
    } else if (it != near.end()) {
      reason =
          fmt::format("the other side has it with {} threads", length(*it->second, "case.threads"));
    } else if (!in_base && !is_ok(*rows[i])) {
      reason = fmt::format("{}: {}", text_of(value_at(*rows[i], "status")),
                           text_of(value_at(*rows[i], "reason")));
    }
    const bool expected = missing || (planned.empty() && it == near.end());
    one_sided.push_back({labels[i], reason, in_base, in_base && expected && is_ok(*rows[i])});
  }
}

void check_machines(const std::vector<RowPair>& pairs) {
  const auto differ = std::find_if(pairs.begin(), pairs.end(),
                                   [](const RowPair& pair) { return !same_machine(pair); });
  if (differ == pairs.end()) return;
  throw UsageError(
      fmt::format("the runs are of different machines ({}; {}): times cannot be compared; "
                  "--across-machines compares the rest and shows the times",
                  machine_of(*differ->base), machine_of(*differ->now)));
}

CaseComparison compare_rows(const RowPair& pair, const std::string& label,
                            const std::vector<Rule>& rules, const CompareOptions& options) {
  CaseComparison c;
  c.case_id = id_of(*pair.now);
  c.label = label;
  c.spec = value_at(*pair.now, "case");
  c.base_status = text_of(value_at(*pair.base, "status"));
  c.status = text_of(value_at(*pair.now, "status"));
  c.base_counts = has_figures(*pair.base);
  c.counts = has_figures(*pair.now);
  if (!is_ok(*pair.now)) c.reason = text_of(value_at(*pair.now, "reason"));
  if (c.base_counts && c.counts) {
    c.metrics = judge(*pair.base, *pair.now, rules, options.history, same_machine(pair));
  }
  if (options.exact_only) {
    std::erase_if(c.metrics, [](const MetricComparison& metric) {
      return metric.field->certainty == Certainty::noisy;
    });
  }
  return c;
}

// What holds for many cases, once.
void add_notes(const Comparison& comparison, std::vector<std::string>& notes) {
  int unknown = 0, changed = 0, times = 0, elsewhere = 0, raised = 0;
  double largest = 0;
  for (const CaseComparison& c : comparison.cases) {
    for (const MetricComparison& m : c.metrics) {
      changed += m.metric == "digest" && m.note == "changed";
      elsewhere += m.note == kAnotherMachine;
      if (m.raised) {
        ++raised;
        largest = std::max(largest, *m.threshold);
      }
      if (m.field->gate != Gate::time || !m.threshold) continue;
      ++times;
      unknown += m.note.find(kNoiseUnknown) != std::string::npos;
    }
  }
  if (raised > 0) {
    notes.push_back(fmt::format(
        "earlier runs differ so much that the thresholds of {} figures are wider, up to {:.0f} %: "
        "slowdowns below that are not seen",
        raised, 100 * largest));
  }
  if (elsewhere > 0) {
    notes.push_back(
        fmt::format("{} measured figures are of another machine: --all shows them, "
                    "nothing decides by them",
                    elsewhere));
  }
  if (unknown > 0) {
    notes.push_back(
        fmt::format("noise unknown for {} of {} times: they count beyond their threshold alone; a "
                    "--history with {} runs of this machine says how much separate runs differ",
                    unknown, times, kFewestHistoryRuns));
  }
  if (changed > 0) {
    notes.push_back(fmt::format(
        "digest changed in {} cases: the last bits of their outputs, which other kernels and other "
        "orders of sums change too",
        changed));
  }
}

}  // namespace

Comparison compare(const ComparedRun& base, const ComparedRun& now, const CompareOptions& options) {
  const Paired paired = pair_rows(base, now);
  if (!options.across_machines) check_machines(paired.pairs);

  Rows of_base, of_now;
  for (const Json& row : base.rows) of_base.push_back(&row);
  for (const Json& row : now.rows) of_now.push_back(&row);
  Comparison comparison;
  comparison.base = fmt::format("{} (commit {})", base.name, commits(of_base));
  comparison.now = fmt::format("{} (commit {})", now.name, commits(of_now));
  add_one_sided(paired.only_base, paired.only_now, true, now.planned, comparison.one_sided);
  add_one_sided(paired.only_now, paired.only_base, false, base.planned, comparison.one_sided);

  Rows in_both;
  for (const RowPair& pair : paired.pairs) in_both.push_back(pair.now);
  const std::vector<std::string> labels = row_labels(in_both);
  const std::vector<Rule> all = rules(options.gated, options.thresholds, options.time_threshold);
  for (size_t i = 0; i < paired.pairs.size(); ++i) {
    comparison.cases.push_back(compare_rows(paired.pairs[i], labels[i], all, options));
  }
  comparison.notes = differences(paired.pairs);
  add_notes(comparison, comparison.notes);
  return comparison;
}

}  // namespace kvmark
