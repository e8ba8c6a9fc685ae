#include "bench/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/report/format.h"
#include "bench/report/overview.h"
#include "bench/report/row.h"
#include "bench/report/scaling.h"
#include "bench/report/section.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  std::string_view title, unit;
};
constexpr std::array<Column, 14> kColumns = {{{"engine", ""},
                                              {"context", "tokens"},
                                              {"decode", "tok/s"},
                                              {"TPOT mean", "ms"},
                                              {"ITL p50", "ms"},
                                              {"ITL p99", "ms"},
                                              {"TTFT", "ms"},
                                              {"of ceiling", "%"},
                                              {"KV live", "bytes"},
                                              {"reserved", "bytes"},
                                              {"KV/token", "bytes"},
                                              {"correct", "rel. RMS"},
                                              {"loss", ""},
                                              {"speed-up", "×"}}};
constexpr size_t kCeilingColumn = 7;  // left out where no row has a figure there

constexpr std::string_view kDefinitions[] = {
    "context: prompt + generated tokens of a sequence.",
    "decode: generated tokens of all sequences, the first of each left out, over decode wall time; "
    "median of the rounds.",
    "TPOT: (end − first token)/(n − 1), mean of the rounds; decode and speed-up use medians. ITL: "
    "gaps between tokens, all rounds together.",
    "TTFT: first token − start, median of the rounds. A percentile that too few samples carry is "
    "—.",
    "KV live: committed rows, by formula; reserved: what the allocator holds; KV/token: (live + "
    "tables)/positions.",
    "correct: error against fp64 attention over the engine's own stored rows; ✗ is wrong and "
    "invalid.",
    "loss, against uncompressed f32: KLD of the next token in nats (trained weights on text), else "
    "attn, error of the attention output; ✗ misses the plan's gate. attn ranks formats on seeded "
    "data; for quality score a real model (model.file and score.text).",
    "speed-up: median decode rate over the baseline's (recompute, else the first engine that is "
    "ok).",
};
constexpr std::string_view kCeilingDefinition =
    "of ceiling: stored bytes that the attention reads, over its time, against what a plain read "
    "of "
    "the same size reached in the same rounds.";
constexpr std::string_view kAboveDefinition =
    "‡: faster than that read: a cache effect, bytes counted that were not read, or a read that "
    "the "
    "machine's other work disturbed.";
constexpr std::string_view kRoughDefinition = "~: of fewer than 6 rounds, so without an interval.";
constexpr std::string_view kGenericDefinition =
    "generic kernels decode to f32 first; compare the bytes and losses of these formats, not their "
    "speed: ";
constexpr std::string_view kWholeRun = "whole run of ";
constexpr std::string_view kWholeRunDefinition =
    "whole run: start to last token, median of the rounds. slope: exponent with which the time so "
    "far grows with the tokens, over the last half: 1 linear, 2 quadratic.";
constexpr std::string_view kOverviewDefinition =
    "tables of formats: medians over rounds; a speed is a ratio of whole steps, appending "
    "included, "
    "taken round by round where the two took turns.";
constexpr std::string_view kApartDefinition =
    "†: not measured side by side with the engine that it is compared with, so a drift of the "
    "machine may be part of the speed-up.";

// ---- Which rows belong together ----

// A gate goes with the engine's format.
constexpr std::string_view kEngineKeys[] = {"engine", "preset", "gate"};
constexpr std::string_view kLengthKeys[] = {"prompt_len", "gen_len", "seq_len", "max_seq_len"};
// What the heading says in words of its own.
constexpr std::string_view kHeadingKeys[] = {"model",   "family", "level",    "weights",  "layers",
                                             "d_model", "heads",  "kv_heads", "head_dim", "batch",
                                             "threads", "device", "norm_eps"};
// What usually goes with the model's name: of interest where one model has several.
constexpr std::string_view kModelKeys[] = {"ffn", "vocab", "context"};

template <size_t n>
bool is_one_of(std::string_view key, const std::string_view (&keys)[n]) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

// The case without its engine and lengths, as text: equal for the rows of one section.
std::string section_key(const Json& record) {
  Json rest = Json::object();
  for (const auto& [key, value] : value_at(record, "case").items()) {
    if (!is_one_of(key, kEngineKeys) && !is_one_of(key, kLengthKeys)) rest[key] = value;
  }
  return rest.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string length_key(const Json& record) {
  std::string key;
  for (std::string_view name : kLengthKeys) {
    key += value_at(value_at(record, "case"), name).dump() + " ";
  }
  return key;
}

using Group = std::vector<const Json*>;

// In the order in which the sections first come up; within one by context, then as recorded.
std::vector<Group> group_records(Records records) {
  std::vector<Group> groups;
  std::map<std::string, size_t> index;
  for (const Json& record : records) {
    const auto [it, is_new] = index.emplace(section_key(record), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(&record);
  }
  for (Group& group : groups) {
    std::stable_sort(group.begin(), group.end(), [](const Json* a, const Json* b) {
      return std::pair(length(*a, "case.prompt_len"), length(*a, "case.gen_len")) <
             std::pair(length(*b, "case.prompt_len"), length(*b, "case.gen_len"));
    });
  }
  return groups;
}

// Keys of the cases that the heading has no words for and that differ between the sections.
std::vector<std::string> varying_keys(Records records) {
  std::map<std::string, std::string> first;
  std::vector<std::string> keys;
  for (const Json& record : records) {
    for (const auto& [key, value] : value_at(record, "case").items()) {
      if (is_one_of(key, kEngineKeys) || is_one_of(key, kLengthKeys)) continue;
      if (is_one_of(key, kHeadingKeys) || value.is_structured()) continue;
      const std::string scope =
          is_one_of(key, kModelKeys) ? text_of(value_at(record, "case.model")) : "";
      const auto [it, is_new] = first.emplace(key + " " + scope, text_of(value));
      if (is_new || it->second == text_of(value)) continue;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

// ---- A section ----

// The engine that speeds are compared with: recompute, else the first that was measured.
const Json* baseline_of(const Group& group) {
  const Json* first = nullptr;
  for (const Json* record : group) {
    if (!is_ok(*record)) continue;
    if (value_at(*record, "case.engine") == "recompute") return record;
    if (!first) first = record;
  }
  return first;
}

std::string heading_of(const Json& record, const std::vector<std::string>& varying) {
  const auto setting = [&](std::string_view key) {
    const Json& value = value_at(value_at(record, "case"), key);
    return value.is_null() ? std::string(kNothing) : text_of(value);
  };
  std::string text = fmt::format(
      "{} ({}, {} layers, d_model {}, heads {}:{} of {}, weights {}) · level {} · batch {} · "
      "threads {} · {}",
      setting("model"), setting("family"), setting("layers"), setting("d_model"), setting("heads"),
      setting("kv_heads"), setting("head_dim"), setting("weights"), setting("level"),
      setting("batch"), setting("threads"), setting("device"));
  for (const std::string& key : varying) text += fmt::format(" · {} {}", key, setting(key));
  return text;
}

// The row of every length that the others of that length are compared with.
std::map<std::string, const Json*> baselines_of(const Group& group, const Json* baseline) {
  std::map<std::string, const Json*> baselines;
  for (const Json* record : group) {
    if (!baseline || !is_ok(*record)) continue;
    if (value_at(*record, "case.engine") != value_at(*baseline, "case.engine")) continue;
    baselines.emplace(length_key(*record), record);
  }
  return baselines;
}

// Drops a column that says nothing in any row.
void drop_if_empty(size_t column, Section& section) {
  const auto is_empty = [column](const Row& row) {
    return !row.has_figures || row.cells[column] == kNothing;
  };
  if (!std::all_of(section.rows.begin(), section.rows.end(), is_empty)) return;
  section.columns.erase(section.columns.begin() + column);
  for (Row& row : section.rows) {
    if (row.has_figures) row.cells.erase(row.cells.begin() + column);
  }
}

Section section_of(const Group& group, const std::vector<std::string>& varying) {
  const Json* baseline = baseline_of(group);
  const std::map<std::string, const Json*> baselines = baselines_of(group, baseline);
  Section section{heading_of(*group.front(), varying), "", {}, {}, {}};
  for (const Column& c : kColumns)
    section.columns.push_back({std::string(c.title), std::string(c.unit)});
  if (baseline) {
    section.baseline = fmt::format("speed-up against {}", engine_label(*baseline));
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> runs;  // by length, in order
  for (const Json* record : group) {
    const auto base = baselines.find(length_key(*record));
    const Json* of_length = base == baselines.end() ? nullptr : base->second;
    section.rows.push_back(row_of(*record, of_length));
    const Row& row = section.rows.back();
    if (!row.has_figures) continue;
    const std::string context = context_label(*record);
    if (!row.note.empty()) {
      section.lines.push_back(fmt::format("{}, {}: {}", engine_label(*record), context, row.note));
    }
    std::string whole = whole_run_of(*record, of_length);
    if (whole.empty()) continue;
    if (runs.empty() || runs.back().first != context) runs.push_back({context, {}});
    runs.back().second.push_back(std::move(whole));
  }
  drop_if_empty(kCeilingColumn, section);
  for (const auto& [context, engines] : runs) {
    section.lines.push_back(fmt::format("{}{}: {}", kWholeRun, context, fmt::join(engines, ", ")));
  }
  return section;
}

std::vector<Section> sections_of(Records records) {
  const std::vector<std::string> varying = varying_keys(records);
  std::vector<Section> sections;
  for (const Group& group : group_records(records)) {
    sections.push_back(section_of(group, varying));
  }
  return sections;
}

// ---- What stands below ----

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

// "fp16 = contiguous/f16" for each preset whose name is not the engine's own.
std::string preset_line(Records records) {
  std::vector<std::string> names;
  for (const Json& record : records) {
    const std::string label = engine_label(record);
    const std::string engine = text_of(value_at(record, "case.engine"));
    if (label != engine) add_once(names, fmt::format("{} = {}", label, engine));
  }
  return names.empty() ? "" : fmt::format("engines: {}", fmt::join(names, ", "));
}

std::vector<std::string> generic_formats(Records records) {
  std::vector<std::string> formats;
  for (const Json& record : records) {
    if (!has_figures(record) || value_at(record, "kernel") != "generic") continue;
    add_once(formats, engine_format(record));
  }
  return formats;
}

std::string machine_line(const Json& env) {
  const auto known = [&](const char* key) {
    const Json& value = value_at(env, key);
    return value.is_null() ? "unknown" : text_of(value);
  };
  std::string line = fmt::format("measured on: {}, {} cores, {}, commit {}", known("cpu"),
                                 known("cores"), known("compiler"), known("git"));
  const Json& gpu = value_at(env, "gpu");
  if (!gpu.is_null()) line += fmt::format(", {}", text_of(gpu));
  return line;
}

// Does any section have such a row?
template <typename Predicate>
bool any_row(const std::vector<Section>& sections, Predicate is_such) {
  return std::any_of(sections.begin(), sections.end(), [&](const Section& section) {
    return std::any_of(section.rows.begin(), section.rows.end(),
                       [&](const Row& row) { return row.has_figures && is_such(row); });
  });
}

bool has_whole_runs(const std::vector<Section>& sections) {
  return std::any_of(sections.begin(), sections.end(), [](const Section& section) {
    return !section.lines.empty() && section.lines.back().starts_with(kWholeRun);
  });
}

bool has_mark(const std::vector<Section>& tables, std::string_view mark) {
  return any_row(tables, [&](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(),
                       [&](const std::string& cell) { return cell.ends_with(mark); });
  });
}

// `side_by_side`: the tables of the overview.
std::vector<std::string> footer_of(Records records, const std::vector<Section>& sections,
                                   const std::vector<Section>& side_by_side) {
  std::vector<std::string> lines;
  if (std::string presets = preset_line(records); !presets.empty()) lines.push_back(presets);
  std::vector<std::string> doubts;
  for (const Json& record : records) {
    const Json& env = value_at(record, "env");
    add_once(lines, machine_line(env));
    for (const Json& doubt : value_at(env, "unstable")) add_once(doubts, text_of(doubt));
  }
  if (!doubts.empty()) {
    lines.push_back(fmt::format("timings may be noisy: {}", fmt::join(doubts, "; ")));
  }
  if (const auto formats = generic_formats(records); !formats.empty()) {
    lines.push_back(fmt::format("{}{}.", kGenericDefinition, fmt::join(formats, ", ")));
  }
  for (std::string& line : scaling_lines(records)) lines.push_back(std::move(line));
  for (std::string_view definition : kDefinitions) lines.emplace_back(definition);
  if (std::any_of(sections.begin(), sections.end(), [](const Section& section) {
        return section.columns.size() == kColumns.size();
      })) {
    lines.emplace_back(kCeilingDefinition);
  }
  if (has_mark(sections, kAboveMark) || has_mark(side_by_side, kAboveMark)) {
    lines.emplace_back(kAboveDefinition);
  }
  if (has_whole_runs(sections)) lines.emplace_back(kWholeRunDefinition);
  if (any_row(sections, [](const Row& row) { return row.cells.back().starts_with(kRoughMark); })) {
    lines.emplace_back(kRoughDefinition);
  }
  if (!side_by_side.empty()) lines.emplace_back(kOverviewDefinition);
  if (has_mark(sections, kApartMark) || has_mark(side_by_side, kApartMark)) {
    lines.emplace_back(kApartDefinition);
  }
  return lines;
}

}  // namespace

std::vector<std::string> headings(Records records) {
  const std::vector<std::string> varying = varying_keys(records);
  std::vector<std::string> texts;
  for (const Json& record : records) texts.push_back(heading_of(record, varying));
  return texts;
}

std::string table(Records records) {
  if (records.empty()) return "no records\n";
  std::string out;
  const std::vector<Section> sections = sections_of(records);
  for (const Section& section : sections) out += render(section) + "\n";
  const std::vector<Section> side_by_side = overview(records);
  for (const Section& section : side_by_side) out += render(section) + "\n";
  for (const std::string& line : footer_of(records, sections, side_by_side)) out += wrapped(line);
  return out;
}

std::string markdown(Records records) {
  if (records.empty()) return "no records\n";
  std::string out;
  const std::vector<Section> sections = sections_of(records);
  for (const Section& section : sections) out += markdown_of(section) + "\n";
  const std::vector<Section> side_by_side = overview(records);
  for (const Section& section : side_by_side) out += markdown_of(section) + "\n";
  for (const std::string& line : footer_of(records, sections, side_by_side))
    out += fmt::format("- {}\n", line);
  return out;
}

}  // namespace kvmark
