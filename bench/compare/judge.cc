#include "bench/compare/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/row.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Interval = std::array<double, 2>;

constexpr double kSigmas = 3;
constexpr double kNoisyThreshold = 0.1;  // of what is noisy and has none in the table

// ---- What the rows hold ----

std::optional<double> figure(const Json& row, const MetricName& name) {
  const Json& field = value_at(row, name.field->path);
  const Json& value = name.part.empty() ? field : value_at(field, name.part);
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// Of a median.
std::optional<Interval> interval(const Json& row, const MetricName& name) {
  if (name.part != "p50") return std::nullopt;
  return interval_at(row, fmt::format("{}.p50_ci95", name.field->path));
}

std::string interval_text(const std::optional<Interval>& interval, int64_t rounds) {
  if (!interval) return fmt::format("of {} rounds, no interval", rounds);
  return fmt::format("[{}, {}] of {} rounds", human_number((*interval)[0]),
                     human_number((*interval)[1]), rounds);
}

bool overlap(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  return a && b && (*a)[0] <= (*b)[1] && (*b)[0] <= (*a)[1];
}

// ---- A noisy metric ----

// The threshold of a noisy metric with the scatter of earlier runs, and where the figure stands
// among them, in words.
struct Noise {
  double threshold;
  std::string words;
};

Noise noise_of(const Rule& rule, const Json& now, const History& history) {
  const std::vector<double> earlier = history.figures(now, rule.name.path());
  const auto sigma = run_scatter(earlier);
  if (!sigma) {
    return {rule.threshold,
            earlier.empty() ? std::string(kNoiseUnknown)
                            : fmt::format("{}: {} earlier runs", kNoiseUnknown, earlier.size())};
  }
  const double limit = std::expm1(kSigmas * *sigma);
  const double median = *summarize(earlier).p50;
  const auto value = figure(now, rule.name);
  return {std::max(rule.threshold, limit),
          fmt::format("3σ of {} earlier runs is {:.2g} %; their median {}{}", earlier.size(),
                      100 * limit, human_number(median),
                      value ? fmt::format(", {:+.1f} %", 100 * (*value / median - 1)) : "")};
}

void decide_noisy(const Rule& rule, const Json& base, const Json& now, const History& history,
                  MetricComparison& m) {
  const Noise noise = noise_of(rule, now, history);
  m.threshold = noise.threshold;
  m.raised = noise.threshold > rule.threshold;
  const int64_t base_rounds = length(base, "sampling.rounds");
  const int64_t rounds = length(now, "sampling.rounds");
  const auto base_interval = interval(base, rule.name), now_interval = interval(now, rule.name);
  m.note = fmt::format("base {}, new {}; {}", interval_text(base_interval, base_rounds),
                       interval_text(now_interval, rounds), noise.words);
  if (std::min(base_rounds, rounds) < kFewestRounds) {
    m.verdict = Verdict::undecided;
    m.note = fmt::format("fewer than {} rounds decide nothing; {}", kFewestRounds, m.note);
    return;
  }
  m.verdict = verdict_of(m.field->better, *m.base, *m.now, *m.threshold, rule.floor);
  if (m.verdict != Verdict::same && overlap(base_interval, now_interval)) {
    m.verdict = Verdict::undecided;
    m.note = "the intervals overlap; " + m.note;
  }
}

// ---- Any metric ----

MetricComparison compare_metric(const Rule& rule, bool decides, const Json& base, const Json& now,
                                const History& history, bool same_machine) {
  MetricComparison m;
  m.metric = rule.name.path();
  m.field = rule.name.field;
  m.base = figure(base, rule.name);
  m.now = figure(now, rule.name);
  if (m.base && m.now && *m.base != 0) m.change = *m.now / *m.base - 1;
  if (!decides) return m;
  for (const auto& [side, value] : {std::pair{"base", m.base}, std::pair{"new run", m.now}}) {
    if (value.value_or(0) >= 0) continue;
    throw UsageError(fmt::format("{} of {} in the {}: is {:g}; expected no negative number",
                                 m.metric, text_of(value_at(now, "case_id")), side, *value));
  }
  if (!m.base || !m.now) {
    const bool exact = m.field->certainty == Certainty::exact;
    m.verdict = !m.base ? Verdict::shown : exact ? Verdict::worse : Verdict::undecided;
    m.note = m.base ? "the new run lacks the figure" : "the base lacks the figure";
  } else if (m.field->certainty == Certainty::exact) {
    m.threshold = rule.threshold;
    m.verdict = verdict_of(m.field->better, *m.base, *m.now, rule.threshold, rule.floor);
    if (rule.floor > 0) m.note = fmt::format("counts beyond {:g} only", rule.floor);
  } else if (same_machine) {
    decide_noisy(rule, base, now, history, m);
  } else {
    m.note = kAnotherMachine;
  }
  return m;
}

// The outputs' bits: exact, but reordered sums change them without any fault.
MetricComparison compare_digests(const Json& base, const Json& now) {
  MetricComparison m;
  m.metric = "digest";
  m.field = find_record_field("digest");
  m.note = value_at(base, "digest") == value_at(now, "digest") ? "same" : "changed";
  return m;
}

}  // namespace

std::vector<Rule> rules(const std::vector<MetricName>& gated,
                        const std::map<std::string, double>& thresholds,
                        std::optional<double> time_threshold) {
  std::vector<Rule> all;
  const auto add = [&](const MetricName& name) {
    const auto same = [&](const Rule& rule) { return rule.name.path() == name.path(); };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back({name});
  };
  for (const RecordField& field : record_fields()) {
    if (field.role != FieldRole::metric) continue;
    if (field.type == RecordFieldType::summary) {
      for (const char* part : {"p50", "p99"}) add({&field, part});
    } else if (field.type != RecordFieldType::interval) {
      add({&field, ""});
    }
  }
  for (const MetricName& name : gated) add(name);
  for (const auto& [path, threshold] : thresholds) add(parse_metric(path));

  for (Rule& rule : all) {
    const RecordField& field = *rule.name.field;
    const bool median = rule.name.part.empty() || rule.name.part == "p50";
    if (median) rule.gate = field.gate;
    rule.threshold = field.gate == Gate::shown && field.certainty == Certainty::noisy
                         ? kNoisyThreshold
                         : field.threshold;
    rule.floor = field.floor;
    const std::string path = rule.name.path();
    const auto own = thresholds.find(path);
    const bool asked = std::any_of(gated.begin(), gated.end(),
                                   [&](const MetricName& name) { return name.path() == path; });
    if (asked || own != thresholds.end()) rule.gate = Gate::gated;
    if (own != thresholds.end()) rule.threshold = own->second;
    if (time_threshold && field.gate == Gate::time && median) rule.threshold = *time_threshold;
  }
  return all;
}

Verdict verdict_of(Better better, double base, double now, double threshold, double floor) {
  const double smaller = std::min(base, now), larger = std::max(base, now);
  if (larger == smaller || larger - smaller <= floor) return Verdict::same;
  if (smaller > 0 && larger - smaller <= threshold * smaller) return Verdict::same;
  return (now > base) == (better == Better::bigger) ? Verdict::better : Verdict::worse;
}

std::vector<MetricComparison> judge(const Json& base, const Json& now,
                                    const std::vector<Rule>& rules, const History& history,
                                    bool same_machine) {
  std::vector<MetricComparison> metrics;
  bool timed = false;  // the row's one time, which both sides have, has been found
  for (const Rule& rule : rules) {
    if (!figure(base, rule.name) && !figure(now, rule.name)) continue;
    const bool decides = rule.gate == Gate::gated || (rule.gate == Gate::time && !timed);
    const bool both = figure(base, rule.name) && figure(now, rule.name);
    timed = timed || (both && rule.name.field->gate == Gate::time && rule.name.part == "p50");
    metrics.push_back(compare_metric(rule, decides, base, now, history, same_machine));
  }
  metrics.push_back(compare_digests(base, now));
  return metrics;
}

}  // namespace kvmark
