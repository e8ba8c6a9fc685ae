#include "bench/page/comparable.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "bench/compare/surroundings.h"
#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const Json*>;

constexpr size_t kSpokenOf = 6;  // engines that a sentence may name
constexpr std::string_view kUsualLayout = "contiguous", kUsualBaseline = "contiguous/f16";

bool is_attention(const Json& record) { return value_at(record, "case.level") == "attention"; }

// Equal for rows of one ComparableRows.
std::string rest_without_length(const Json& record) {
  std::vector<std::string_view> keys(kLengthKeys.begin(), kLengthKeys.end());
  if (is_attention(record)) keys.push_back("layers");
  return rest_of_case(record, keys);
}

// ---- What tells settings apart ----

// Follow from the engine, the model or other keys, or are said elsewhere.
constexpr std::string_view kSilentKeys[] = {"engine",    "preset",      "kv_heads",   "level",
                                            "rope.dims", "source.kind", "source.name"};
// Of no consequence for the attention alone.
constexpr std::string_view kStepKeys[] = {"layers", "d_model", "ffn",
                                          "vocab",  "weights", "context"};

// A setting of a flat case in words; "" where it says nothing to a reader, or is the usual one.
std::string setting_words(const Json& flat, const std::string& key) {
  const auto text = [&](const char* name) { return text_of(flat.value(name, Json())); };
  const bool is_attention_alone = text("level") == "attention";
  if (is_one_of(key, kSilentKeys) || is_one_of(key, kLengthKeys)) return "";
  if (is_attention_alone && is_one_of(key, kStepKeys)) return "";
  if (key == "model") return text("model");
  if (key == "heads") return fmt::format("{}:{} heads", text("heads"), text("kv_heads"));
  if (key == "head_dim") return fmt::format("{} channels a head", text("head_dim"));
  if (key == "threads") return counted(flat.value("threads", size_t{0}), "thread");
  if (key == "score.text") return fmt::format("scored on {}", text("score.text"));
  if (key == "pool_order") return text("pool_order") + " pages";
  const Json value = flat.value(key, Json());
  if (value.is_boolean()) return value.get<bool>() ? key : "";
  return value.is_null() ? "" : fmt::format("{} {}", key, text_of(value));
}

// What differs between the groups, `of` being one row of each. What goes with the model's name is
// said only where one model has several.
std::string setting_of(const Json& record, const Rows& of) {
  std::vector<Json> others;
  for (const Json* other : of) others.push_back(flat_case(*other));
  const Json own = flat_case(record);
  std::vector<std::string> parts;
  for (const auto& item : own.items()) {
    const std::string& key = item.key();
    const std::string words = setting_words(own, key);
    const bool varies = std::any_of(others.begin(), others.end(), [&](const Json& other) {
      const auto is_shared = [&](const char* name) {
        return value_at(other, name) == value_at(own, name);
      };
      const bool counts = key == "model" || (is_shared("model") &&
                                             (!is_one_of(key, kStepKeys) || is_shared("level")));
      return counts && setting_words(other, key) != words;
    });
    if (varies && !words.empty()) parts.push_back(words);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A time of the attention alone must not be taken for that of a step.
std::string timed_setting_of(const Json& record, const std::string& setting, const Rows& of) {
  const bool needs_level =
      is_attention(record) ||
      std::any_of(of.begin(), of.end(), [](const Json* other) { return is_attention(*other); });
  if (!needs_level) return setting;
  const char* level = is_attention(record) ? "Attention alone" : "Whole steps";
  return setting.empty() ? level : fmt::format("{}, {}", level, setting);
}

bool machines_differ(const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Json* row) {
    return machine_of(*row) != machine_of(*rows.front());
  });
}

// ---- Groups ----

std::string baseline_of(const std::vector<Point>& points) {
  std::string first;
  for (const Point& point : points) {
    for (const Json* row : point.rows) {
      if (engine_name(*row) == kUsualBaseline) return engine_name(*row);
      if (first.empty() && !has_no_cache(*row)) first = engine_name(*row);
    }
  }
  return first;
}

// In the order of context, and of the records.
std::vector<Point> points_of(const Rows& rows) {
  std::vector<std::pair<std::string, Point>> points;  // by what else they share
  for (const Json* row : rows) {
    const std::string key = rest_of_case(*row);
    auto it =
        std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.first == key; });
    if (it == points.end()) it = points.insert(it, {key, {context_tokens(*row), {}}});
    it->second.rows.push_back(row);
  }
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return a.second.context < b.second.context;
  });
  std::vector<Point> sorted;
  for (auto& [key, point] : points) sorted.push_back(std::move(point));
  return sorted;
}

// Layout and kind of format: "paged:16/int8" of "paged:16/int8:g32:asym".
std::string kind_of(const Json& record) {
  const std::string format = engine_format(record);
  return fmt::format("{}/{}", engine_layout(record), format.substr(0, format.find(':')));
}

}  // namespace

const Json* Point::last_of(const std::string& engine) const {
  const auto it = std::find_if(rows.rbegin(), rows.rend(),
                               [&](const Json* row) { return engine_name(*row) == engine; });
  return it == rows.rend() ? nullptr : *it;
}

const Point& ComparableRows::longest() const {
  const auto it = std::find_if(points.rbegin(), points.rend(),
                               [&](const Point& point) { return point.last_of(baseline); });
  return it == points.rend() ? points.back() : *it;
}

std::vector<const Json*> ComparableRows::spoken_of(const Point& point) const {
  // Its engines as recorded, those in one piece before those in pages: the first of each kind, then
  // others up to the limit.
  Rows engines;
  for (const Json* row : point.rows) {
    const Json* last = point.last_of(engine_name(*row));
    const bool is_known = std::find(engines.begin(), engines.end(), last) != engines.end();
    if (!is_known && !has_no_cache(*row) && engine_name(*row) != baseline) engines.push_back(last);
  }
  std::stable_partition(engines.begin(), engines.end(),
                        [](const Json* row) { return engine_layout(*row) == kUsualLayout; });
  std::set<std::string> kinds;
  std::set<const Json*> chosen;
  for (const Json* row : engines) {
    if (chosen.size() < kSpokenOf && kinds.insert(kind_of(*row)).second) chosen.insert(row);
  }
  for (const Json* row : engines) {
    if (chosen.size() < kSpokenOf) chosen.insert(row);
  }
  std::erase_if(engines, [&](const Json* row) { return chosen.count(row) == 0; });
  return engines;
}

std::vector<ComparableRows> comparable_rows(Records records) {
  std::vector<std::pair<std::string, Rows>> groups;
  for (const Json& record : records) {
    if (!is_ok(record)) continue;
    const std::string key = rest_without_length(record) + machine_of(record);
    auto it =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == key; });
    if (it == groups.end()) it = groups.insert(it, {key, {}});
    it->second.push_back(&record);
  }
  Rows first_of_each;
  for (const auto& [key, rows] : groups) first_of_each.push_back(rows.front());
  std::vector<ComparableRows> all;
  for (const auto& [key, rows] : groups) {
    ComparableRows group;
    group.setting = setting_of(*rows.front(), first_of_each);
    if (machines_differ(first_of_each)) {
      group.setting += (group.setting.empty() ? "on " : ", on ") + machine_of(*rows.front());
    }
    group.timed_setting = timed_setting_of(*rows.front(), group.setting, first_of_each);
    group.points = points_of(rows);
    group.baseline = baseline_of(group.points);
    group.rows = rows.size();
    all.push_back(std::move(group));
  }
  const auto is_alone = [](const ComparableRows& g) { return is_attention(*g.points[0].rows[0]); };
  std::stable_sort(all.begin(), all.end(), [&](const ComparableRows& a, const ComparableRows& b) {
    return a.rows != b.rows ? a.rows > b.rows : is_alone(a) < is_alone(b);
  });
  return all;
}

std::optional<SpeedRatio> step_speed(const Json& row, const Json& other) {
  const bool decodes = length(row, "case.gen_len") > 1;  // else its rounds are prefills
  if (!decodes || is_generic(row) != is_generic(other)) return std::nullopt;
  return speed_ratio(row, other);
}

std::string short_name(const Json& row) {
  return engine_layout(row) == kUsualLayout ? engine_format(row) : engine_name(row);
}

bool has_no_cache(const Json& record) { return engine_name(record) == "recompute"; }

}  // namespace kvmark
