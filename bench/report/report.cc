#include "bench/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/report/doubts.h"
#include "bench/report/format.h"
#include "bench/report/legend.h"
#include "bench/report/overview.h"
#include "bench/report/row.h"
#include "bench/report/section.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  std::string_view title, unit, definition;
};

// Both levels have the same columns; without the rest of the decoder there are no tokens to count.
constexpr std::array<Column, 5> kTokenColumns = {
    {{"decode", "tok/s",
      "decode: generated tokens of all sequences, the first of each left out, over decode time."},
     {"TPOT mean", "ms", "TPOT: (end − first token)/(n − 1)."},
     {"ITL p50", "ms", "ITL: gaps between tokens, all rounds together."},
     {"ITL p99", "ms", ""},
     {"TTFT", "ms", "TTFT: first token − start."}}};
constexpr std::array<Column, 5> kStepColumns = {
    {{"steps", "1/s", "steps: of the attention of these layers, a token of each sequence."},
     {"mean", "ms", "mean: of a step, over the rounds; p50 and p99: of all steps together."},
     {"p50", "ms", ""},
     {"p99", "ms", ""},
     {"TTFT", "ms", ""}}};
constexpr std::array<Column, 8> kOtherColumns = {
    {{"of ceiling", "% (GB/s)",
      "of ceiling: stored bytes that the attention reads, over its time, against a plain read of "
      "as "
      "many in the same rounds."},
     {"instructions", "/step",
      "instructions: of a decode step, counted under callgrind with 1 thread and AVX2 kernels; "
      "compared with those of the same case alone, they say nothing about time."},
     {"KV live", "bytes", "KV live: committed rows."},
     {"reserved", "bytes", "reserved: allocated."},
     {"KV/token", "bytes", "KV/token: (live + tables)/positions."},
     {"correct", "rel. RMS", "correct: error against fp64 attention over the engine's own rows."},
     {"loss", "", ""},
     {"speed-up", "×", "Medians of the rounds, but for means."}}};

constexpr std::string_view kKldDefinition =
    "loss, KLD: divergence of the next token from uncompressed f32, in nats.";
constexpr std::string_view kAttendDefinition =
    "loss, attn: error of the attention output against uncompressed f32; on seeded data it ranks "
    "formats, for quality score a real model (model.file and score.text).";

// ---- Which rows belong together ----

// A gate goes with the engine's format.
constexpr std::string_view kEngineKeys[] = {"engine", "preset", "gate"};
// What the heading says in words of its own.
constexpr std::string_view kHeadingKeys[] = {"model",   "family", "level",    "weights",  "layers",
                                             "d_model", "heads",  "kv_heads", "head_dim", "batch",
                                             "threads", "device", "norm_eps"};
// What usually goes with the model's name: of interest where one model has several.
constexpr std::string_view kModelKeys[] = {"ffn", "vocab", "context"};

// Equal for the rows of one section.
std::string section_key(const Json& record) {
  return rest_of_case(record, {std::begin(kLengthKeys), std::end(kLengthKeys)});
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
  for (const auto& item : value_at(record, "case").items()) {
    const std::string& key = item.key();
    const bool varies = std::find(varying.begin(), varying.end(), key) != varying.end();
    if (varies || is_unusual(key, item.value())) text += fmt::format(" · {} {}", key, setting(key));
  }
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

std::vector<Heading> columns_of(const Json& record) {
  std::vector<Heading> columns = {{"engine", "", ""},
                                  {"context", "tokens", "context: prompt + generated tokens."}};
  const auto add = [&](const auto& all) {
    for (const Column& c : all) {
      columns.push_back({std::string(c.title), std::string(c.unit), std::string(c.definition)});
    }
  };
  add(value_at(record, "case.level") == "attention" ? kStepColumns : kTokenColumns);
  add(kOtherColumns);
  return columns;
}

// Drops the columns of figures that no row has, if any row has figures at all.
// The speed stays, unless none was meant to be measured.
void drop_empty_columns(Section& section, bool timed) {
  const size_t first = timed ? 3 : 2;  // behind the names, and the speed
  for (size_t column = section.columns.size(); column-- > first;) {
    const auto says_nothing = [column](const Row& row) {
      return !row.has_figures || row.cells[column] == kNothing;
    };
    if (!std::all_of(section.rows.begin(), section.rows.end(), says_nothing)) continue;
    section.columns.erase(section.columns.begin() + column);
    for (Row& row : section.rows) {
      if (row.has_figures) row.cells.erase(row.cells.begin() + column);
    }
  }
}

std::string loss_definition(const Group& group) {
  const auto any_has = [&](std::string_view path) {
    return std::any_of(group.begin(), group.end(), [path](const Json* record) {
      return has_figures(*record) && value_at(*record, path).is_number();
    });
  };
  return std::string(any_has("accuracy.loss.kld_mean") ? kKldDefinition : kAttendDefinition);
}

using NameOf = std::string (*)(const Json& record);

Section section_of(const Group& group, const std::vector<std::string>& varying, NameOf name_of,
                   const Doubts& doubts) {
  const Json* baseline = baseline_of(group);
  const std::map<std::string, const Json*> baselines = baselines_of(group, baseline);
  Section section{heading_of(*group.front(), varying), "", columns_of(*group.front()), {}, {}};
  for (Heading& column : section.columns) {
    if (column.title == "loss") column.definition = loss_definition(group);
  }
  const bool timed = value_at(*group.front(), "case.count").is_null();
  if (baseline && timed) section.baseline = fmt::format("speed-up against {}", name_of(*baseline));
  std::vector<std::pair<std::string, std::vector<std::string>>> runs;  // by length, in order
  for (const Json* record : group) {
    const auto base = baselines.find(length_key(*record));
    const Json* of_length = base == baselines.end() ? nullptr : base->second;
    const std::string name = name_of(*record);
    section.rows.push_back(row_of(*record, name + doubts.mark_of(*record), of_length));
    const Row& row = section.rows.back();
    if (!row.has_figures) continue;
    const std::string context = context_label(*record);
    if (!row.note.empty()) {
      section.lines.push_back(fmt::format("{}, {}: {}", name, context, row.note));
    }
    std::string whole = whole_run_of(*record, name, of_length);
    if (whole.empty()) continue;
    if (runs.empty() || runs.back().first != context) runs.push_back({context, {}});
    runs.back().second.push_back(std::move(whole));
  }
  drop_empty_columns(section, timed);
  for (const auto& [context, engines] : runs) {
    section.lines.push_back(fmt::format("whole run of {}: {}", context, fmt::join(engines, ", ")));
  }
  return section;
}

std::vector<Section> sections_of(Records records, const Doubts& doubts) {
  const std::vector<std::string> varying = varying_keys(records);
  const NameOf name_of = all_have_presets(records) ? engine_label : engine_name;
  std::vector<Section> sections;
  for (const Group& group : group_records(records)) {
    sections.push_back(section_of(group, varying, name_of, doubts));
  }
  return sections;
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
  const Doubts doubts(records);
  const std::vector<Section> sections = sections_of(records, doubts);
  for (const Section& section : sections) out += render(section) + "\n";
  const std::vector<Section> side_by_side = overview(records);
  for (const Section& section : side_by_side) out += render(section) + "\n";
  for (const std::string& line : legend(records, doubts, sections, side_by_side)) {
    out += wrapped(line);
  }
  return out;
}

std::string markdown(Records records) {
  if (records.empty()) return "no records\n";
  std::string out;
  const Doubts doubts(records);
  const std::vector<Section> sections = sections_of(records, doubts);
  for (const Section& section : sections) out += markdown_of(section) + "\n";
  const std::vector<Section> side_by_side = overview(records);
  for (const Section& section : side_by_side) out += markdown_of(section) + "\n";
  for (const std::string& line : legend(records, doubts, sections, side_by_side)) {
    out += fmt::format("- {}\n", line);
  }
  return out;
}

}  // namespace kvmark
