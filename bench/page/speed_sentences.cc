#include "bench/page/speed_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "bench/report/format.h"
#include "bench/report/growth.h"
#include "bench/report/ratio.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Sentence::Kind;
using Texts = std::vector<std::string>;

// ---- Words ----

// 16384 → 16,384.
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

// "at 16,384 tokens of context".
std::string place_of(const Point& point) {
  const bool has_prompt = length(*point.rows.front(), "case.prompt_len") > 0;
  return has_prompt ? fmt::format("at {} tokens of context", grouped(point.context))
                    : fmt::format("over {} tokens from an empty cache", grouped(point.context));
}

std::string capitalized(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Two decimals, more where these would round to 1.
std::string times_text(double ratio) {
  const double off = std::abs(ratio - 1);
  return fmt::format("{:.{}f}", ratio, off < 0.0005 ? 4 : off < 0.005 ? 3 : 2);
}

// Without an interval: 1.05, 2.3, 37.
std::string about_text(double ratio) {
  return ratio > 0.5 && ratio < 2 ? fmt::format("{:.2f}", ratio) : rough_number(ratio);
}

std::string interval_text(const std::array<double, 2>& interval) {
  return fmt::format("{}–{}", times_text(interval[0]), times_text(interval[1]));
}

// ---- Speed against the baseline ----

struct Judged {
  std::string name;
  SpeedRatio speed;

  SpeedVerdict verdict() const { return verdict_of(speed); }
};

// Against the baseline of the same execution, where there is one.
std::optional<Judged> judged(const ComparableRows& group, const Point& point, const Json& row) {
  const Json* base = first_beside(
      point.rows, row, [&](const Json& other) { return engine_name(other) == group.baseline; });
  const auto speed = base ? step_speed(row, *base) : std::nullopt;
  return speed ? std::optional(Judged{short_name(row), *speed}) : std::nullopt;
}

// Kernels of one kind are held against each other; that it is the generic one must be said.
std::string timed_setting(const ComparableRows& group, const Point& point) {
  if (!is_generic(*point.last_of(group.baseline))) return group.timed_setting;
  return group.timed_setting +
         (group.timed_setting.empty() ? "Generic kernels" : ", generic kernels");
}

std::string baseline_name(const ComparableRows& group, const Point& point) {
  return short_name(*point.last_of(group.baseline));
}

Sentence decided_sentence(const std::vector<Judged>& engines, const std::string& place,
                          const std::string& baseline) {
  Texts parts;
  for (const Judged& e : engines) {
    const std::string ratio = times_text(e.speed.ratio), ends = interval_text(*e.speed.interval);
    parts.push_back(parts.empty() ? fmt::format("{} is {} times as fast as {} (95 % interval {})",
                                                e.name, ratio, baseline, ends)
                                  : fmt::format("{} {} times ({})", e.name, ratio, ends));
  }
  return {Kind::fact, fmt::format("{} {}.", capitalized(place), fmt::join(parts, ", "))};
}

Sentence same_sentence(const std::vector<Judged>& engines, const std::string& place,
                       const std::string& baseline) {
  Texts parts;
  for (const Judged& e : engines) {
    parts.push_back(fmt::format("{} ({})", e.name, interval_text(*e.speed.interval)));
  }
  return {Kind::fact, fmt::format("{} as fast as {} to within {:.0f} %: {}.", capitalized(place),
                                  baseline, 100 * kSameSpeed, fmt::join(parts, ", "))};
}

Sentence open_sentence(const std::vector<Judged>& engines, const std::string& place,
                       const std::string& baseline) {
  Texts parts;
  for (const Judged& e : engines) {
    parts.push_back(
        fmt::format("{} ({}{})", e.name, interval_text(*e.speed.interval),
                    parts.empty() ? fmt::format(" times as fast as {}", baseline) : ""));
  }
  return {Kind::undecided, fmt::format("Not decided {}, since the 95 % interval holds 1: {}.",
                                       place, fmt::join(parts, ", "))};
}

std::string why_no_interval(const std::vector<Judged>& engines) {
  size_t rounds = engines.front().speed.rounds;
  bool any_in_turns = false, any_apart = false;
  for (const Judged& e : engines) {
    (e.speed.in_turns ? any_in_turns : any_apart) = true;
    rounds = std::min(rounds, e.speed.rounds);
  }
  const std::string in_rounds = fmt::format("measured in {}", counted(rounds, "round"));
  if (!any_apart) return in_rounds;
  return any_in_turns ? in_rounds + ", or not side by side" : "not measured side by side";
}

Sentence rough_sentence(const std::vector<Judged>& engines, const std::string& place,
                        const std::string& baseline) {
  Texts parts;
  for (const Judged& e : engines) {
    const std::string ratio = about_text(e.speed.ratio);
    parts.push_back(parts.empty()
                        ? fmt::format("{} is about {} times as fast as {}", e.name, ratio, baseline)
                        : fmt::format("{} about {} times", e.name, ratio));
  }
  return {Kind::undecided, fmt::format("{} {}; {}: no interval.", capitalized(place),
                                       fmt::join(parts, ", "), why_no_interval(engines))};
}

// ---- From which context on ----

struct Payoff {
  int64_t first = 0;  // from this context on the engine is faster, up to the longest measured
  bool everywhere = false;
};

// Nothing where it is not known to be faster at the longest context, or where there is one alone.
std::optional<Payoff> payoff_of(const ComparableRows& group, const std::string& engine) {
  int64_t slow_until = -1;    // the longest context where it is not known to be faster, in any run
  std::vector<int64_t> fast;  // contexts of the runs where it is
  for (const Point& point : group.points) {
    const Json* row = point.last_of(engine);
    const auto at_point = row ? judged(group, point, *row) : std::nullopt;
    if (!at_point) continue;  // not measured there
    if (at_point->verdict() == SpeedVerdict::faster) {
      fast.push_back(point.context);
    } else {
      slow_until = point.context;
    }
  }
  const auto first = std::upper_bound(fast.begin(), fast.end(), slow_until);
  const bool is_curve = group.points.front().context != group.longest().context;
  if (first == fast.end() || !is_curve) return std::nullopt;
  return Payoff{*first, fast.size() == group.points.size()};
}

// ---- Recomputing ----

// "511 tokens after a prompt of 128", "511 tokens of each of 4 sequences".
std::string tokens_of_run(const Json& record) {
  const int64_t prompt = length(record, "case.prompt_len"), batch = length(record, "case.batch");
  return fmt::format("{} tokens{}{}", grouped(length(record, "case.gen_len")),
                     batch > 1 ? fmt::format(" of each of {} sequences", batch) : "",
                     prompt > 0 ? fmt::format(" after a prompt of {}", grouped(prompt)) : "");
}

std::string growth_text(const Json& recompute, const Json& cached) {
  const auto without = growth_of(recompute), with = growth_of(cached);
  if (!without || !with) return "";
  return fmt::format(
      " The time so far grows with the tokens to the power of {:.2f} without a "
      "cache and of {:.2f} with it (1: linear, 2: quadratic).",
      *without, *with);
}

// "a step took 36.61 times as long (95 % interval 36.12–37.04)".
Sentence recompute_step(const Judged& cached) {
  const SpeedRatio& speed = cached.speed;
  if (speed.interval) {
    const bool is_open = cached.verdict() == SpeedVerdict::open;
    return {is_open ? Kind::undecided : Kind::fact,
            fmt::format("a step took {} times as long (95 % interval {})", times_text(speed.ratio),
                        interval_text(*speed.interval))};
  }
  return {speed.ratio >= kFar ? Kind::fact : Kind::undecided,
          fmt::format("a step took about {} times as long ({}: no interval)",
                      about_text(speed.ratio), why_no_interval({cached}))};
}

}  // namespace

std::vector<Sentence> speed_sentences(const ComparableRows& group) {
  const Point& point = group.longest();
  std::vector<Judged> decided, same, open, rough;
  for (const Json* row : group.spoken_of(point)) {
    const auto engine = judged(group, point, *row);
    if (!engine) continue;
    switch (engine->verdict()) {
      case SpeedVerdict::faster:
      case SpeedVerdict::slower:
        decided.push_back(*engine);
        break;
      case SpeedVerdict::same:
        same.push_back(*engine);
        break;
      case SpeedVerdict::open:
        open.push_back(*engine);
        break;
      case SpeedVerdict::rough:
        rough.push_back(*engine);
    }
  }
  std::vector<Sentence> sentences;
  const auto add = [&](std::vector<Judged>& engines, auto sentence_of) {
    if (engines.empty()) return;
    std::stable_sort(engines.begin(), engines.end(), [](const Judged& a, const Judged& b) {
      return a.speed.ratio > b.speed.ratio;
    });
    Sentence s = sentence_of(engines, place_of(point), baseline_name(group, point));
    s.text = in_setting(timed_setting(group, point), std::move(s.text));
    sentences.push_back(std::move(s));
  };
  add(decided, decided_sentence);
  add(same, same_sentence);
  add(open, open_sentence);
  add(rough, rough_sentence);
  return sentences;
}

std::optional<Sentence> payoff_sentence(const ComparableRows& group) {
  const Point& point = group.longest();
  std::map<int64_t, Texts> names;  // by the context from which they are faster; 0: everywhere
  for (const Json* row : group.spoken_of(point)) {
    const auto payoff = payoff_of(group, engine_name(*row));
    if (payoff) names[payoff->everywhere ? 0 : payoff->first].push_back(short_name(*row));
  }
  if (names.empty()) return std::nullopt;
  const auto place = [&](int64_t first) {
    if (first == 0) return std::string("at all of them");
    return first == point.context ? fmt::format("at {} alone", grouped(first))
                                  : fmt::format("from {} on", grouped(first));
  };
  Texts parts;
  for (const auto& [first, engines] : names) {
    const std::string verb = !parts.empty()        ? ""
                             : engines.size() == 1 ? " is faster than "
                                                   : " are faster than ";
    parts.push_back(fmt::format("{}{} {}", fmt::join(engines, ", "),
                                verb.empty() ? "" : verb + baseline_name(group, point),
                                place(first)));
  }
  return Sentence{Kind::fact,
                  in_setting(timed_setting(group, point),
                             fmt::format("Of the contexts measured, {} to {} tokens, {}.",
                                         grouped(group.points.front().context),
                                         grouped(point.context), fmt::join(parts, "; ")))};
}

// The longest run that both made.
std::optional<Sentence> recompute_sentence(const ComparableRows& group) {
  constexpr const char* kWholeRun = "latency.e2e_ms.p50";
  for (auto point = group.points.rbegin(); point != group.points.rend(); ++point) {
    const Json* slow = point->last_of("recompute");
    const Json* cached =
        slow ? first_beside(point->rows, *slow,
                            [&](const Json& other) { return engine_name(other) == group.baseline; })
             : nullptr;
    const auto speed = cached ? step_speed(*cached, *slow) : std::nullopt;
    const auto slow_ms = figure(slow, kWholeRun), cached_ms = figure(cached, kWholeRun);
    if (!speed || !slow_ms || !cached_ms) continue;
    const Sentence step = recompute_step({short_name(*cached), *speed});
    std::string text =
        fmt::format("Without a cache {} took {} s, with {} {} s; {}.{}", tokens_of_run(*slow),
                    human_number(1e-3 * *slow_ms), short_name(*cached),
                    human_number(1e-3 * *cached_ms), step.text, growth_text(*slow, *cached));
    return Sentence{step.kind, in_setting(timed_setting(group, *point), std::move(text))};
  }
  return std::nullopt;
}

}  // namespace kvmark
