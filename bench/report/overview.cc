#include "bench/report/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bench/record/or_null.h"
#include "bench/record/stats.h"
#include "bench/report/doubts.h"
#include "bench/report/format.h"
#include "bench/report/ratio.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// What follows from the engine or from other keys, or stands in one column with them.
constexpr std::string_view kSilentKeys[] = {"engine",  "preset",      "gate",     "layers",
                                            "seq_len", "max_seq_len", "kv_heads", "gen_len"};

bool is_shown(const Json& record) {
  return has_figures(record) && value_at(record, "case.level") == "attention" &&
         value_at(record, "work.bandwidth_fraction").is_number() &&
         std::ssize(rounds_of(record)) >= kIntervalSamples;
}

// ---- Cells ----

// "0.97 (0.95–0.99)".
std::string with_interval(double value, const Json& interval, double unit, int digits) {
  std::string text = fmt::format("{:.{}f}", value / unit, digits);
  if (interval.is_array() && interval.size() == 2) {
    text += fmt::format(" ({:.{}f}–{:.{}f})", interval[0].get<double>() / unit, digits,
                        interval[1].get<double>() / unit, digits);
  }
  return text;
}

// "90 (85–95) of 41.2": the percentage at `fraction` of the ceiling at `ceiling`, and its GB/s; the
// interval stands at `fraction`_ci95.
std::string percentage(const Json& record, const std::string& fraction, const char* ceiling,
                       const Doubts& doubts) {
  const Json& value = value_at(record, fraction);
  if (!value.is_number()) return "";
  const double part = value.get<double>();
  std::string text = with_interval(part, value_at(record, fraction + "_ci95"), 0.01, 0);
  if (part > kLargestFraction) text += kAboveMark;
  const Json& gb_per_s = value_at(record, ceiling);
  if (gb_per_s.is_number()) text += " of " + ceiling_text(gb_per_s.get<double>());
  return text + doubts.mark_of(record);
}

std::string page_percentage(const Json& record, const Doubts& doubts) {
  std::string text =
      percentage(record, "work.page_bandwidth_fraction", "work.page_read_ceiling_gb_per_s", doubts);
  const Json& pages = value_at(record, "work.page_read_ceiling_gb_per_s");
  const Json& piece = value_at(record, "work.read_ceiling_gb_per_s");
  if (text.empty() || !pages.is_number() || !piece.is_number()) return text;
  const bool above = pages.get<double>() > kLargestFraction * piece.get<double>();
  return above ? text + std::string(kPagesAboveMark) : text;
}

// How many times as fast the record is as the other one; "" where there is no other.
std::string speed(const Json& record, const Json* other) {
  if (!other) return "";
  if (other == &record) return "1";
  const auto speed = speed_ratio(record, *other);
  if (!speed) return "";
  if (!speed->in_turns) return fmt::format("{:.2f}{}", speed->ratio, kApartMark);
  return with_interval(speed->ratio, or_null(speed->interval), 1, 2);
}

// ---- Rows and columns ----

struct Setting {
  std::string title;
  std::function<std::string(const Json& record)> text;
};

std::string case_text(const Json& record, const std::string& key) {
  return text_of(value_at(value_at(record, "case"), key));
}

Setting setting_of(const std::string& key) {
  if (key == "heads") {
    return {key, [](const Json& record) {
              return fmt::format("{}:{}", case_text(record, "heads"),
                                 case_text(record, "kv_heads"));
            }};
  }
  if (key == "prompt_len") return {"context", context_label};
  return {key, [key](const Json& record) { return case_text(record, key); }};
}

using Rows = std::vector<const Json*>;

// What differs between the rows; heads and head_dim, the shape, always.
std::vector<Setting> settings_of(const Rows& rows) {
  std::vector<Setting> settings;
  for (const auto& item : value_at(*rows.front(), "case").items()) {
    const std::string& key = item.key();
    if (std::find(std::begin(kSilentKeys), std::end(kSilentKeys), key) != std::end(kSilentKeys) ||
        item.value().is_structured()) {
      continue;
    }
    Setting setting = setting_of(key);
    const bool varies = std::any_of(rows.begin(), rows.end(), [&](const Json* row) {
      return setting.text(*row) != setting.text(*rows.front());
    });
    if (varies || key == "heads" || key == "head_dim" || is_unusual(key, item.value()))
      settings.push_back(std::move(setting));
  }
  return settings;
}

bool same_engine(const Json& a, const Json& b) {
  return value_at(a, "case.engine") == value_at(b, "case.engine");
}

const Json* first_engine(const Rows& rows, const Json& record) {
  const std::string rest = rest_of_case(record);
  return first_beside(rows, record, [&](const Json& row) {
    return same_engine(row, *rows.front()) && rest_of_case(row) == rest;
  });
}

const Json* in_one_piece(const Rows& rows, const Json& record) {
  if (engine_layout(record) == "contiguous") return nullptr;
  const std::string rest = rest_of_case(record);
  return first_beside(rows, record, [&](const Json& row) {
    return engine_layout(row) == "contiguous" && engine_format(row) == engine_format(record) &&
           rest_of_case(row) == rest;
  });
}

const Json* of_fresh_pages(const Rows& rows, const Json& record) {
  const bool has_pages = engine_layout(record).starts_with("paged");
  if (!has_pages || value_at(record, "case.pool_order") == "fresh") return nullptr;
  const std::string rest = rest_of_case(record, {"pool_order"});
  return first_beside(rows, record, [&](const Json& row) {
    return same_engine(row, record) && value_at(row, "case.pool_order") == "fresh" &&
           rest_of_case(row, {"pool_order"}) == rest;
  });
}

const Json* with_fewest_threads(const Rows& rows, const Json& record) {
  const std::string rest = rest_of_case(record, {"threads"});
  const Json* fewest = &record;
  for (const Json* row : rows) {
    const bool is_like = same_engine(*row, record) && rest_of_case(*row, {"threads"}) == rest;
    if (is_like && length(*row, "case.threads") < length(*fewest, "case.threads")) fewest = row;
  }
  return fewest == &record ? nullptr : fewest;
}

// ---- Tables ----

using Cell = std::function<std::string(const Json& record)>;

// Nothing where all cells are empty or 1.
std::optional<Section> table_of(std::string heading, const Rows& rows, const Cell& cell) {
  Section section{std::move(heading), "", {}, {}, {}};
  const std::vector<Setting> settings = settings_of(rows);
  for (const Setting& setting : settings) section.columns.push_back({setting.title, "", ""});
  section.columns.push_back({"layout", "", ""});
  const size_t labels = section.columns.size();
  bool tells = false;
  for (const Json* record : rows) {
    const std::string text = cell(*record);
    if (text.empty()) continue;
    tells |= text != "1";
    // The column of its format and the first row of its setting and layout that is free there, made
    // where there is none.
    const auto column =
        std::find_if(section.columns.begin() + labels, section.columns.end(),
                     [&](const Heading& h) { return h.title == engine_format(*record); });
    const size_t at = column - section.columns.begin();
    if (column == section.columns.end())
      section.columns.push_back({engine_format(*record), "", ""});
    std::vector<std::string> label;
    for (const Setting& setting : settings) label.push_back(setting.text(*record));
    label.push_back(engine_layout(*record));
    auto row = std::find_if(section.rows.begin(), section.rows.end(), [&](const Row& r) {
      const bool is_free = r.cells.size() <= at || r.cells[at] == kNothing;
      return is_free && std::equal(label.begin(), label.end(), r.cells.begin());
    });
    if (row == section.rows.end()) row = section.rows.insert(row, Row{label, "", true});
    if (row->cells.size() <= at) row->cells.resize(at + 1, std::string(kNothing));
    row->cells[at] = text;
  }
  if (!tells) return {};
  for (Row& row : section.rows) row.cells.resize(section.columns.size(), std::string(kNothing));
  return section;
}

}  // namespace

std::vector<Section> overview(Records records) {
  Rows rows;
  for (const Json& record : records) {
    if (is_shown(record)) rows.push_back(&record);
  }
  if (rows.empty()) return {};
  const auto against = [&rows](const Json* (*other)(const Rows&, const Json&)) {
    return [&rows, other](const Json& record) { return speed(record, other(rows, record)); };
  };
  const Doubts doubts(records);
  std::vector<Section> sections;
  const auto add = [&](std::string heading, const Cell& cell) {
    if (auto section = table_of(std::move(heading), rows, cell)) sections.push_back(*section);
  };
  add("Attention, % of the read ceiling (95 % interval) of GB/s", [&](const Json& record) {
    return percentage(record, "work.bandwidth_fraction", "work.read_ceiling_gb_per_s", doubts);
  });
  add("Attention, % of the ceiling of shuffled pages (95 % interval) of GB/s",
      [&](const Json& record) { return page_percentage(record, doubts); });
  add(fmt::format("Speed against {} (95 % interval)",
                  text_of(value_at(*rows.front(), "case.engine"))),
      against(first_engine));
  add("Speed against one piece, in the same format (95 % interval)", against(in_one_piece));
  add("Speed of shuffled pages against fresh ones, of the medians", against(of_fresh_pages));
  add("Speed against the fewest threads, of the medians", against(with_fewest_threads));
  return sections;
}

}  // namespace kvmark
