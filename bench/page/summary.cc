#include "bench/page/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "bench/compare/wording.h"
#include "bench/page/comparable.h"
#include "bench/page/figures.h"
#include "bench/page/speed_sentences.h"
#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Sentence::Kind;
using Texts = std::vector<std::string>;

// ---- Bytes ----

constexpr double kFewerBytes = 0.995;  // of the baseline's, to be worth saying

std::optional<Sentence> bytes_sentence(const ComparableRows& group) {
  constexpr const char* kBytes = "memory.kv_bytes_per_token";
  const Point& point = group.longest();
  const Json* base = point.last_of(group.baseline);
  const auto base_bytes = figure(base, kBytes);
  if (!base_bytes || !(*base_bytes > 0)) return std::nullopt;
  Texts parts;
  std::set<std::string> formats;  // a layout hardly changes the bytes of a token
  for (const Json* row : group.spoken_of(point)) {
    const auto bytes = figure(*row, kBytes);
    if (!bytes || !(*bytes > 0) || *bytes > kFewerBytes * *base_bytes) continue;
    if (!formats.insert(engine_format(*row)).second) continue;
    const double part = *bytes / *base_bytes;
    parts.push_back(
        parts.empty()
            ? fmt::format("{} keeps a token in {:.2f} of {}'s bytes: {:.2f} times the context in "
                          "the same memory",
                          short_name(*row), part, short_name(*base), 1 / part)
            : fmt::format("{} in {:.2f}: {:.2f} times", short_name(*row), part, 1 / part));
  }
  if (parts.empty()) return std::nullopt;
  return Sentence{Kind::fact,
                  in_setting(group.setting, fmt::format("{}.", fmt::join(parts, "; ")))};
}

// ---- Loss ----

// 0.048 → "4.8 %".
std::string percent_text(double part) { return fmt::format("{} %", rough_number(100 * part)); }

// The first row of each format, the baseline's included.
std::vector<const Json*> rows_by_format(const ComparableRows& group) {
  const Point& point = group.longest();
  std::vector<const Json*> rows = group.spoken_of(point);
  if (const Json* base = point.last_of(group.baseline)) rows.insert(rows.begin(), base);
  std::set<std::string> formats;
  std::erase_if(rows, [&](const Json* row) { return !formats.insert(engine_format(*row)).second; });
  return rows;
}

constexpr double kLeastKld = 1e-4;  // nats: less is nothing to a reader

// "98.7 %"; 100 % is all of them, and never rounded up to.
std::string agreement_text(double part) {
  const double percent = 100 * part;
  if (part == 1) return "100 %";
  return percent >= 99.95 ? "more than 99.9 %" : fmt::format("{:.1f} %", percent);
}

// Of scored text.
Texts text_losses(const ComparableRows& group) {
  Texts parts;
  for (const Json* row : rows_by_format(group)) {
    const auto kld = figure(*row, "accuracy.loss.kld_mean");
    if (!kld || !(*kld > 0)) continue;
    const auto top1 = figure(*row, "accuracy.loss.top1_agreement");
    parts.push_back(
        fmt::format("{} {} nats{}", short_name(*row),
                    *kld < kLeastKld ? fmt::format("under {}", kLeastKld) : rough_number(*kld),
                    top1 ? fmt::format(" with the same most likely token at {} of the positions",
                                       agreement_text(*top1))
                         : ""));
  }
  return parts;
}

Texts attention_losses(const ComparableRows& group) {
  Texts parts;
  for (const Json* row : rows_by_format(group)) {
    const auto error = figure(*row, "accuracy.loss.attend_rel_rms");
    if (!error || *error < kSameAsF32) continue;
    parts.push_back(fmt::format("{} {}", short_name(*row), percent_text(*error)));
  }
  return parts;
}

std::optional<Sentence> loss_sentence(const ComparableRows& group) {
  const auto told = [&](std::string text) {
    return Sentence{Kind::fact, in_setting(group.setting, std::move(text))};
  };
  if (const Texts parts = text_losses(group); !parts.empty()) {
    return told(
        fmt::format("How far the probabilities of the next token move on the scored text, "
                    "against uncompressed f32 (KLD): {}.",
                    fmt::join(parts, "; ")));
  }
  const Texts parts = attention_losses(group);
  if (parts.empty()) return std::nullopt;
  return told(
      fmt::format("What number formats lose, as error of the attention output against "
                  "uncompressed f32 (relative RMS): {}. This ranks formats; how much a "
                  "text suffers, only a real model with a text can tell.",
                  fmt::join(parts, ", ")));
}

// ---- Rows that are not ok ----

constexpr size_t kReasons = 2, kReasonColumns = 110;  // told of a status, and of a reason

// "2 of 20 rows failed: killed by SIGKILL".
std::string status_text(Records records, std::string_view status) {
  std::vector<std::pair<std::string, size_t>> reasons;  // with their rows
  size_t rows = 0;
  for (const Json& record : records) {
    if (value_at(record, "status") != status) continue;
    ++rows;
    const std::string reason = one_line(text_of(value_at(record, "reason")));
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& r) { return r.first == reason; });
    if (known == reasons.end()) {
      reasons.push_back({reason, 1});
    } else {
      ++known->second;
    }
  }
  if (rows == 0) return "";
  Texts parts;
  for (size_t i = 0; i < std::min(reasons.size(), kReasons); ++i) {
    const auto& [reason, times] = reasons[i];
    parts.push_back(clip(reason, kReasonColumns) +
                    (times > 1 ? fmt::format(" ({} times)", times) : ""));
  }
  if (reasons.size() > kReasons) {
    parts.push_back(fmt::format("and {} more", counted(reasons.size() - kReasons, "reason")));
  }
  return fmt::format("{} of {} {}: {}", rows, counted(records.size(), "row"), status,
                     fmt::join(parts, "; "));
}

std::optional<Sentence> not_ok_sentence(Records records) {
  Texts parts;
  for (const char* status : {"invalid", "failed", "skipped"}) {
    if (std::string text = status_text(records, status); !text.empty()) {
      parts.push_back(std::move(text));
    }
  }
  if (parts.empty()) return std::nullopt;
  return Sentence{Kind::warning, fmt::format("{}.", fmt::join(parts, ". "))};
}

bool judges_times(const Comparison& comparison) {
  return std::any_of(comparison.cases.begin(), comparison.cases.end(), [](const auto& c) {
    return std::any_of(c.metrics.begin(), c.metrics.end(), [](const MetricComparison& m) {
      return m.verdict != Verdict::shown && m.field && m.field->gate == Gate::time;
    });
  });
}

}  // namespace

std::vector<Sentence> summary(Records records) {
  const std::vector<ComparableRows> groups = comparable_rows(records);
  std::vector<Sentence> sentences;
  // What the first group has to say that has anything to say.
  const auto add_all = [&](std::vector<Sentence> (*sentences_of)(const ComparableRows&)) {
    for (const ComparableRows& group : groups) {
      std::vector<Sentence> found = sentences_of(group);
      for (Sentence& s : found) sentences.push_back(std::move(s));
      if (!found.empty()) return;
    }
  };
  const auto add = [&](std::optional<Sentence> (*sentence_of)(const ComparableRows&)) {
    for (const ComparableRows& group : groups) {
      if (auto found = sentence_of(group)) return sentences.push_back(std::move(*found));
    }
  };
  add(bytes_sentence);
  add_all(speed_sentences);
  add(payoff_sentence);
  add(loss_sentence);
  add(recompute_sentence);
  if (!sentences.empty() && groups.size() > 1) {
    sentences.push_back({Kind::fact, fmt::format("There are {} settings; others may say otherwise.",
                                                 groups.size())});
  }
  if (sentences.empty() && !groups.empty()) {
    sentences.push_back({Kind::fact, "There is nothing here to compare an engine with."});
  }
  if (auto not_ok = not_ok_sentence(records)) sentences.push_back(std::move(*not_ok));
  return sentences;
}

Sentence verdict_sentence(const Comparison& comparison) {
  const ExitCode code = exit_code_of(comparison, /*strict=*/false);
  const Kind kind = code == kExitUndecided               ? Kind::undecided
                    : code != kExitFine                  ? Kind::warning
                    : tally_of(comparison).undecided > 0 ? Kind::undecided
                                                         : Kind::fact;
  return {kind, fmt::format("{} against {}: {}.{}", comparison.now, comparison.base,
                            headline(comparison, /*strict=*/false),
                            judges_times(comparison) ? "" : " No time was judged.")};
}

}  // namespace kvmark
