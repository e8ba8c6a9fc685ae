#include "bench/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/row.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLeastPoints = 3;  // two would fit any exponent
constexpr std::string_view kDefinition =
    "slope of attention: exponent with which the median attention time of a step and layer grows "
    "with the positions that the step sees, or with the sequences of the batch; 1 is linear; ±: "
    "its 95 % interval, from what the points deviate. Short contexts may lie in the caches of the "
    "processor: configs/scaling.yaml keeps the bytes of a step "
    "constant.";

struct Curve {
  std::string engine;
  std::vector<double> x, ms;  // of one layer
};

// The curves of the cases that are equal but for the engine and what is varied.
struct Setting {
  Json rest;  // the case without these
  std::vector<Curve> curves;
};

struct Axis {
  std::string_view name;
  std::vector<std::string_view> keys;  // of the case, that go with it
  double (*value)(const Json& record);
};

// Mean over the decode steps of a round.
double positions_seen(const Json& record) {
  const double filled = std::max<int64_t>(length(record, "case.prompt_len"), 1);
  return filled + length(record, "case.gen_len") / 2.0;
}

double sequences(const Json& record) { return length(record, "case.batch"); }

bool is_measured(const Json& record) {
  return has_figures(record) && value_at(record, "case.level") == "attention" &&
         value_at(record, "latency.attend_ms.p50").is_number() && length(record, "case.layers") > 0;
}

// The element for which `is_it` holds, made where there is none.
template <typename T, typename Predicate>
T& find_or_add(std::vector<T>& all, Predicate is_it, T fresh) {
  const auto it = std::find_if(all.begin(), all.end(), is_it);
  return it != all.end() ? *it : all.emplace_back(std::move(fresh));
}

std::vector<Setting> settings_of(Records records, const Axis& axis) {
  std::vector<Setting> settings;
  const auto name_of = all_have_presets(records) ? engine_label : engine_name;
  for (const Json& record : records) {
    if (!is_measured(record)) continue;
    Json rest = value_at(record, "case");
    for (const char* key : {"engine", "preset", "gate", "layers"}) rest.erase(key);
    for (const std::string_view key : axis.keys) rest.erase(std::string(key));
    Setting& setting = find_or_add(
        settings, [&](const Setting& s) { return s.rest == rest; }, Setting{rest, {}});
    const std::string engine = name_of(record);
    Curve& curve = find_or_add(
        setting.curves, [&](const Curve& c) { return c.engine == engine; }, Curve{engine, {}, {}});
    curve.x.push_back(axis.value(record));
    curve.ms.push_back(value_at(record, "latency.attend_ms.p50").get<double>() /
                       static_cast<double>(length(record, "case.layers")));
  }
  return settings;
}

// "contiguous/f16 1.00" for each engine with enough points.
std::vector<std::string> slopes_of(const Setting& setting) {
  std::vector<std::string> slopes;
  for (const Curve& curve : setting.curves) {
    const std::set<double> points(curve.x.begin(), curve.x.end());
    if (points.size() < kLeastPoints) continue;
    if (const auto slope = fit_slope(curve.x, curve.ms)) {
      slopes.push_back(
          fmt::format("{} {:.2f} ± {:.2f}", curve.engine, slope->exponent, *slope->half_width));
    }
  }
  return slopes;
}

// ", threads 2" for each key in which the settings differ.
std::string label_of(const Setting& setting, const std::vector<Setting>& settings) {
  std::string label;
  for (const auto& item : setting.rest.items()) {
    const bool varies = std::any_of(settings.begin(), settings.end(), [&](const Setting& other) {
      return value_at(other.rest, item.key()) != item.value();
    });
    if (!varies || item.value().is_structured()) continue;
    label += fmt::format(", {} {}", item.key(), text_of(item.value()));
  }
  return label;
}

}  // namespace

std::vector<std::string> scaling_lines(Records records) {
  const Axis axes[] = {{"context", {kLengthKeys.begin(), kLengthKeys.end()}, positions_seen},
                       {"batch", {"batch"}, sequences}};
  std::vector<std::string> lines;
  for (const Axis& axis : axes) {
    std::vector<Setting> settings = settings_of(records, axis);
    std::erase_if(settings, [](const Setting& s) { return slopes_of(s).empty(); });
    for (const Setting& setting : settings) {
      lines.push_back(fmt::format("slope of attention against {}{}: {}", axis.name,
                                  label_of(setting, settings),
                                  fmt::join(slopes_of(setting), ", ")));
    }
  }
  if (!lines.empty()) lines.emplace_back(kDefinition);
  return lines;
}

}  // namespace kvmark
