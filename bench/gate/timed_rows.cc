#include "bench/gate/timed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/record/or_null.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGated = "latency.itl_ms";  // both levels have it

Verdict verdict_of(Finding finding) {
  switch (finding) {
    case Finding::same:
      return Verdict::same;
    case Finding::slower:
      return Verdict::worse;
    case Finding::faster:
      return Verdict::better;
    case Finding::undecided:
      return Verdict::undecided;
    case Finding::dropped:
      break;
  }
  return Verdict::shown;
}

Json decision_json(const RowDecision& decision) {
  return {{"finding", finding_word(decision.finding)},
          {"confirmed", decision.confirmed},
          {"pairs", decision.pairs},
          {"change", decision.pairs > 0 ? Json(decision.change) : Json()},
          {"interval_90", decision.interval ? Json(*decision.interval) : Json()},
          {"lower_bound", or_null(decision.lower_bound)}};
}

Json visit_json(const Visit& visit) {
  return {{"start_ms", visit.start_ms},
          {"step_ms", visit.step_ms},
          {"p99_ms", or_null(visit.p99_ms)},
          {"steps", visit.steps},
          {"disturbance", or_null(visit.disturbance)}};
}

std::string how_decided(const RowDecision& decision) {
  std::string how =
      fmt::format("{} pairs{}", decision.pairs, decision.confirmed ? " of the confirmation" : "");
  if (decision.interval) how += ", 90 % interval";
  if (decision.lower_bound) {
    how += fmt::format(", at least {:+.1f} %", 100 * *decision.lower_bound);
  }
  return how;
}

}  // namespace

std::string_view finding_word(Finding finding) {
  switch (finding) {
    case Finding::same:
      return "same";
    case Finding::slower:
      return "slower";
    case Finding::faster:
      return "faster";
    case Finding::undecided:
      return "undecided";
    case Finding::dropped:
      break;
  }
  return "dropped";
}

void hold_to_verified(const TimedRow& row, const VisitPairs::Pair& pair) {
  for (const bool base : {false, true}) {  // a fault of the new build outweighs the base's
    const std::string& verified = base ? row.base_digest : row.digest;
    const std::string& found = base ? pair.base.digest : pair.now.digest;
    if (found == verified) continue;
    throw SideFailed(fmt::format("a visit computed something else (digest {}) than what was "
                                 "verified ({})",
                                 found, verified),
                     base, "invalid");
  }
}

TimedRows::TimedRows(std::vector<TimedRow> rows, const Binary& base, const Binary& now,
                     const ProcedureOptions& procedure, const VisitOptions& visit, uint64_t seed)
    : options_(procedure),
      procedure_(static_cast<int>(rows.size()), procedure),
      visits_(base, now, visit, seed) {
  for (TimedRow& row : rows) rows_.push_back({std::move(row), {}, {}, {}});
}

void TimedRows::take_all(const std::function<void()>& after_pair) {
  while (const auto row = procedure_.next()) {
    take(*row);
    after_pair();
  }
}

void TimedRows::take(int index) {
  Row& row = rows_[index];
  try {
    const VisitPairs::Pair pair = visits_.take(row.row.spec, static_cast<int>(row.pairs.size()));
    hold_to_verified(row.row, pair);
    row.confirming.push_back(procedure_.confirming());
    row.pairs.push_back(pair);
    procedure_.add(index, pair.difference());
  } catch (const SideFailed& e) {
    row.fault = Fault{e.base, e.status, e.what()};
    procedure_.drop(index);
  }
}

template <typename Figure>
std::optional<double> TimedRows::median_of(const Row& row, bool base, Figure Visit::*figure) {
  std::vector<double> values;
  for (const VisitPairs::Pair& pair : row.pairs) {
    const std::optional<double> value = (base ? pair.base : pair.now).*figure;
    if (value) values.push_back(*value);
  }
  return values.size() == row.pairs.size() ? summarize(values).p50 : std::nullopt;
}

void TimedRows::complete(int index, CaseComparison& comparison) const {
  const Row& row = rows_[index];
  if (row.fault) {
    (row.fault->of_base ? comparison.base_status : comparison.status) = row.fault->status;
    comparison.reason = (row.fault->of_base ? "in the base: " : "") + row.fault->reason;
  }
  MetricComparison gated;
  gated.metric = fmt::format("{}.p50", kGated);
  gated.field = find_record_field(kGated);
  if (row.fault && row.fault->of_base) {  // whether the new build is slower cannot be said
    gated.verdict = Verdict::undecided;
    gated.note = fmt::format("the base became {} in a timed visit", row.fault->status);
    comparison.metrics.push_back(std::move(gated));
    return;
  }
  if (row.pairs.empty()) return;
  const RowDecision decision = procedure_.decision(index);
  gated.base = median_of(row, true, &Visit::step_ms);
  gated.now = median_of(row, false, &Visit::step_ms);
  gated.change = decision.change;
  gated.change_interval = decision.interval;
  gated.threshold = options_.slower;
  gated.verdict = verdict_of(decision.finding);
  gated.note = how_decided(decision);
  comparison.metrics.push_back(std::move(gated));

  MetricComparison tail;
  tail.metric = fmt::format("{}.p99", kGated);
  tail.field = find_record_field(kGated);
  tail.base = median_of(row, true, &Visit::p99_ms);
  tail.now = median_of(row, false, &Visit::p99_ms);
  if (tail.base && tail.now) tail.change = *tail.now / *tail.base - 1;
  tail.note = "median over the visits; never gated";
  comparison.metrics.push_back(std::move(tail));
}

bool TimedRows::all_dropped() const {
  return std::all_of(rows_.begin(), rows_.end(),
                     [](const Row& row) { return row.fault.has_value(); });
}

Json TimedRows::to_json() const {
  Json json = Json::array();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    Json pairs = Json::array();
    for (size_t p = 0; p < row.pairs.size(); ++p) {
      const VisitPairs::Pair& pair = row.pairs[p];
      pairs.push_back({{"stage", row.confirming[p] ? "confirm" : "screen"},
                       {"first", pair.base_first ? "base" : "new"},
                       {"base", visit_json(pair.base)},
                       {"new", visit_json(pair.now)}});
    }
    json.push_back({{"case_id", case_id(row.row.spec)},
                    {"label", case_label(row.row.spec)},
                    {"decision", decision_json(procedure_.decision(static_cast<int>(i)))},
                    {"fault", row.fault ? Json(row.fault->reason) : Json()},
                    {"pairs", std::move(pairs)}});
  }
  return json;
}

}  // namespace kvmark
