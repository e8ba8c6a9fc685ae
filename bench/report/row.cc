#include "bench/report/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/record/metrics.h"
#include "bench/record/stats.h"
#include "bench/report/format.h"
#include "bench/report/growth.h"
#include "bench/report/report.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

bool has_preset(const Json& record) {
  const Json& preset = value_at(record, "case.preset");
  return preset.is_string() && !preset.get<std::string>().empty();
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return text;
}

template <typename Format>
std::string cell(const std::optional<double>& value, Format format) {
  return value ? format(*value) : std::string(kNothing);
}

std::string correct_cell(const Json& record) {
  const Json& passed = value_at(record, "accuracy.correct.passed");
  const auto error = figure(record, "accuracy.correct.rel_rms");
  if (!passed.is_boolean() || !error) return std::string(kNothing);
  return fmt::format("{} {}", passed.get<bool>() ? "✓" : kWrongMark, human_error(*error));
}

std::string loss_cell(const Json& record) {
  const std::string miss =
      value_at(record, "accuracy.loss.passed") == false ? fmt::format(" {}", kWrongMark) : "";
  if (const auto kld = figure(record, "accuracy.loss.kld_mean")) {
    return fmt::format("KLD {}{}", human_error(*kld), miss);
  }
  if (const auto error = figure(record, "accuracy.loss.attend_rel_rms")) {
    return fmt::format("attn {}{}", human_error(*error), miss);
  }
  return std::string(kNothing);
}

// "94.4 (41.2)": per cent of the ceiling, and its GB/s.
std::string ceiling_cell(const Json& record) {
  const auto fraction = figure(record, "work.bandwidth_fraction");
  if (!fraction) return std::string(kNothing);
  const auto ceiling = figure(record, "work.read_ceiling_gb_per_s");
  return fmt::format("{:.1f}{}{}", 100 * *fraction, *fraction > kLargestFraction ? kAboveMark : "",
                     ceiling ? fmt::format(" ({})", ceiling_text(*ceiling)) : "");
}

// Rows of one execution of a group were measured in turn, so that a drift falls on all alike.
bool measured_apart(const Json& record, const Json& baseline) {
  return value_at(record, "group_run") != value_at(baseline, "group_run");
}

// A ratio of medians, as exact as their rounds allow.
std::string ratio_text(double ratio, const Json& record, const Json& baseline) {
  if (&record == &baseline) return "1";
  const int64_t rounds =
      std::min(length(record, "sampling.rounds"), length(baseline, "sampling.rounds"));
  if (rounds >= kIntervalSamples) return human_number(ratio);
  return fmt::format("{}{}", kRoughMark, rough_number(ratio));
}

}  // namespace

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t length(const Json& record, std::string_view path) {
  const Json& value = value_at(record, path);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

bool is_generic(const Json& record) { return value_at(record, "kernel") == "generic"; }

std::optional<double> figure(const Json& record, std::string_view path) {
  const Json& value = value_at(record, path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<double> figure(const Json* record, std::string_view path) {
  static const Json none;
  return figure(record ? *record : none, path);
}

bool is_ok(const Json& record) { return value_at(record, "status") == "ok"; }

bool has_figures(const Json& record) {
  if (value_at(record, "status") != "invalid") return is_ok(record);
  const Json& latency = value_at(record, "latency");
  if (value_at(record, "accuracy.correct.passed") != true) return false;
  return !value_at(record, "counters.instructions_per_step").is_null() ||
         std::any_of(latency.begin(), latency.end(), [](const Json& v) { return !v.is_null(); });
}

std::string engine_label(const Json& record) {
  return has_preset(record) ? text_of(value_at(record, "case.preset")) : engine_name(record);
}

bool all_have_presets(Records records) {
  return std::all_of(records.begin(), records.end(), has_preset);
}

std::string engine_name(const Json& record) { return text_of(value_at(record, "case.engine")); }

bool is_unusual(std::string_view case_key, const Json& value) {
  static const std::pair<std::string_view, Json> kUsual[] = {
      {"pool_order", "fresh"}, {"repeat_kv", false}, {"pin", false}, {"tokens", "forced"}};
  return std::any_of(std::begin(kUsual), std::end(kUsual), [&](const auto& usual) {
    return usual.first == case_key && !value.is_null() && value != usual.second;
  });
}

std::string ceiling_text(double gb_per_s) { return fmt::format("{:.1f}", gb_per_s); }

std::string engine_layout(const Json& record) {
  const std::string engine = engine_name(record);
  return engine.substr(0, engine.find('/'));
}

std::string engine_format(const Json& record) {
  const std::string engine = engine_name(record);
  const size_t slash = engine.find('/');
  return slash == std::string::npos ? "f32" : engine.substr(slash + 1);
}

std::string rest_of_case(const Json& record, const std::vector<std::string_view>& keys) {
  Json rest = value_at(record, "case");
  for (const char* key : {"engine", "preset", "gate"}) rest.erase(key);
  for (const std::string_view key : keys) rest.erase(std::string(key));
  return rest.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json flat_case(const Json& record) {
  const Json by_pointer = value_at(record, "case").flatten();
  Json flat = Json::object();
  for (const auto& [pointer, value] : by_pointer.items()) {
    std::string key = pointer.substr(1);  // "/score/text"
    std::replace(key.begin(), key.end(), '/', '.');
    if (!value.is_null() && !key.starts_with("gate")) flat[key] = value;
  }
  return flat;
}

std::vector<std::string> further_case_keys(Records records) {
  std::vector<std::string> keys;
  for (const Json& record : records) {
    for (const auto& [key, value] : value_at(record, "case").items()) {
      if (value.is_structured() || find_record_field(fmt::format("case.{}", key))) continue;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

int64_t context_tokens(const Json& record) {
  const int64_t prompt = length(record, "case.prompt_len");
  return prompt > 0 ? prompt : length(record, "case.gen_len");
}

std::string context_label(const Json& record) {
  const Json& prompt = value_at(record, "case.prompt_len");
  const Json& generated = value_at(record, "case.gen_len");
  if (prompt.is_null() || generated.is_null()) return std::string(kNothing);
  return fmt::format("{}+{}", text_of(prompt), text_of(generated));
}

Row row_of(const Json& record, std::string engine, const Json* baseline) {
  Row row{{std::move(engine), context_label(record)}, "", has_figures(record)};
  if (!is_ok(record)) {
    row.note = fmt::format("{}: {}", text_of(value_at(record, "status")),
                           one_line(text_of(value_at(record, "reason"))));
  }
  if (!row.has_figures) return row;
  const auto decode = figure(record, "throughput.decode_tok_per_s");
  const auto base = figure(baseline, "throughput.decode_tok_per_s");
  std::string speed_up(kNothing);
  if (decode && base && *base > 0) {
    speed_up = ratio_text(*decode / *base, record, *baseline);
    if (measured_apart(record, *baseline)) speed_up += kApartMark;
  }

  const auto add = [&](std::string_view path, auto format) {
    row.cells.push_back(cell(figure(record, path), format));
  };
  // Without the rest of the decoder there are no tokens, only steps of its attention.
  add(value_at(record, "case.level") == "attention" ? "throughput.decode_tok_per_s_per_seq"
                                                    : "throughput.decode_tok_per_s",
      human_number);
  add("latency.tpot_ms.mean", human_number);
  add("latency.itl_ms.p50", human_number);
  add("latency.itl_ms.p99", human_number);
  add("latency.ttft_ms.p50", human_number);
  row.cells.push_back(ceiling_cell(record));
  add("counters.instructions_per_step", human_number);
  add("memory.kv_live_bytes", human_bytes);
  add("memory.kv_reserved_bytes", human_bytes);
  add("memory.kv_bytes_per_token", human_bytes);
  row.cells.push_back(correct_cell(record));
  row.cells.push_back(loss_cell(record));
  row.cells.push_back(std::move(speed_up));
  return row;
}

std::string whole_run_of(const Json& record, const std::string& engine, const Json* baseline) {
  const auto ms = figure(record, "latency.e2e_ms.p50");
  if (!ms) return "";
  std::vector<std::string> remarks;
  if (const auto slope = growth_of(record)) {
    remarks.push_back(fmt::format("{}{:.1f}", kSlope, *slope));
  }
  const auto base = figure(baseline, "latency.e2e_ms.p50");
  if (base && baseline != &record && *ms > 0 && *base > 0) {
    const double ratio = *base / *ms;
    remarks.push_back(fmt::format(
        "{}× {}{}", ratio_text(ratio >= 1 ? ratio : 1 / ratio, record, *baseline),
        ratio >= 1 ? "faster" : "slower", measured_apart(record, *baseline) ? kApartMark : ""));
  }
  return fmt::format("{} {} s{}", engine, human_number(1e-3 * *ms),
                     remarks.empty() ? "" : fmt::format(" ({})", fmt::join(remarks, ", ")));
}

}  // namespace kvmark
