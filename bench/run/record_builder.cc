#include "bench/run/record_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "bench/record/noise.h"
#include "bench/record/probes.h"
#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Without a cache nothing is held between steps, and no stored bytes are read.
bool keeps_rows(const Case& c) { return c.engine.layout != LayoutKind::recompute; }

// Times under valgrind say nothing.
bool is_timed(const Case& c, const CaseOutcome& o) {
  return !o.samples.empty() && !o.void_timing && !c.counted();
}

// Missing and null alike are nothing.
std::optional<double> number(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return {};
  return it->get<double>();
}

// The part of an object, or null.
const Json& part(const Json& object, const char* key) {
  static const Json null;
  return object.is_object() && object.contains(key) ? object[key] : null;
}

// Copies the keys that `from` has; the others stay null.
void copy(const Json& from, std::initializer_list<const char*> keys, Json& to) {
  if (!from.is_object()) return;
  for (const char* key : keys) {
    if (from.contains(key)) to[key] = from[key];
  }
}

// One number a round, rounds without it left out.
std::vector<double> per_round(const std::vector<Json>& samples, const char* key) {
  std::vector<double> values;
  for (const Json& s : samples) {
    if (const auto value = number(s, key)) values.push_back(*value);
  }
  return values;
}

// A list a round, joined.
std::vector<double> pooled(const std::vector<Json>& samples, const char* key) {
  std::vector<double> values;
  for (const Json& s : samples) {
    for (const Json& value : part(s, key)) values.push_back(value.get<double>());
  }
  return values;
}

std::vector<double> round_figures(const CaseOutcome& o) {
  std::vector<double> figures;
  for (const Json& s : o.samples) figures.push_back(round_figure(s));
  return figures;
}

Json summary_or_null(const std::vector<double>& values) {
  return values.empty() ? Json() : to_json(summarize(values));
}

std::optional<double> median(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : summarize(values).p50;
}

const Json& round_of_median_figure(const std::vector<Json>& samples) {
  std::vector<const Json*> sorted;
  for (const Json& s : samples) sorted.push_back(&s);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Json* a, const Json* b) {
    return round_figure(*a) < round_figure(*b);
  });
  return *sorted[(sorted.size() - 1) / 2];
}

void fill_timing(const Case& c, const CaseOutcome& o, Json& record) {
  Json& latency = record["latency"];
  latency["ttft_ms"] = summary_or_null(per_round(o.samples, "ttft_ms"));
  latency["itl_ms"] = summary_or_null(pooled(o.samples, "itl_ms"));
  latency["tpot_ms"] = summary_or_null(per_round(o.samples, "tpot_ms"));
  latency["e2e_ms"] = summary_or_null(per_round(o.samples, "e2e_ms"));
  latency["attend_ms"] = summary_or_null(pooled(o.samples, "attend_ms"));

  Json& throughput = record["throughput"];
  const auto prefill_ms = median(per_round(o.samples, "prefill_ms"));
  if (c.has_prompt() && prefill_ms && *prefill_ms > 0) {
    throughput["prefill_tok_per_s"] = 1e3 * c.prompt_len * c.batch / *prefill_ms;
  }
  const auto decode_ms = median(per_round(o.samples, "decode_ms"));
  if (c.gen_len > 1 && decode_ms && *decode_ms > 0) {
    const double per_seq = 1e3 * (c.gen_len - 1) / *decode_ms;
    throughput["decode_tok_per_s"] = per_seq * c.batch;
    throughput["decode_tok_per_s_per_seq"] = per_seq;
  }

  Json& kept = record["samples"];
  const std::vector<double> rounds = round_figures(o);
  kept["round"] = rounds;
  kept["outlier_rounds"] = outliers(rounds);
  const Json& typical = round_of_median_figure(o.samples);
  const std::vector<double> gaps = pooled({typical}, "itl_ms");
  const size_t stride = std::max<size_t>(1, (gaps.size() + kMaxGaps - 1) / kMaxGaps);
  kept["itl_ms"] = Json::array();
  for (size_t i = 0; i < gaps.size(); i += stride) kept["itl_ms"].push_back(gaps[i]);
  kept["itl_stride"] = stride;

  // The mean over the rounds of what is itself a mean over the steps of a round.
  for (auto& [phase, value] : record["profile"].items()) {
    std::vector<double> of_rounds;
    for (const Json& s : o.samples) {
      if (const auto ms = number(part(s, "profile"), phase.c_str())) of_rounds.push_back(*ms);
    }
    if (of_rounds.empty()) continue;
    value = std::accumulate(of_rounds.begin(), of_rounds.end(), 0.0) / of_rounds.size();
  }
}

// What callgrind counted, in all rounds together.
void fill_instructions(const CaseOutcome& o, Json& record) {
  const size_t steps = pooled(o.samples, "itl_ms").size();
  if (!o.instructions || steps == 0) return;
  record["counters"]["instructions_per_step"] =
      static_cast<double>(*o.instructions) / static_cast<double>(steps);
}

// What the processor's counters said: the median of the rounds, of the share the smallest.
void fill_hardware_counters(const CaseOutcome& o, Json& record) {
  std::vector<Json> rounds;
  for (const Json& s : o.samples) rounds.push_back(part(s, "counters"));
  if (rounds.empty()) return;
  Json& hardware = record["counters"]["hardware"];
  for (const char* key : {"instructions_per_step", "cycles_per_step", "cache_misses_per_step"}) {
    if (const auto count = median(per_round(rounds, key))) hardware[key] = *count;
  }
  const std::vector<double> shares = per_round(rounds, "running_share");
  if (!shares.empty()) {
    hardware["running_share"] = *std::min_element(shares.begin(), shares.end());
  }
  hardware["missing_because"] = part(rounds.front(), "missing_because");
}

void fill_memory(const Case& c, const CaseOutcome& o, Json& record) {
  Json& memory = record["memory"];
  copy(o.ready, {"weight_bytes"}, memory);
  const Json& measured = part(o.totals, "memory");
  copy(measured,
       {"kv_live_bytes", "kv_reserved_bytes", "kv_peak_bytes", "kv_payload_bytes", "kv_scale_bytes",
        "kv_table_bytes", "weight_bytes", "peak_rss_bytes", "huge_page_bytes", "timeline"},
       memory);
  // Valgrind's own memory is among them.
  if (c.counted()) memory["peak_rss_bytes"] = memory["huge_page_bytes"] = nullptr;

  const auto live = number(measured, "kv_live_bytes");
  const auto reserved = number(measured, "kv_reserved_bytes");
  if (keeps_rows(c) && live && reserved && *reserved > 0)
    memory["kv_fragmentation"] = 1 - *live / *reserved;

  const double positions = double(c.committed()) * c.batch;
  const double tables = number(measured, "kv_table_bytes").value_or(0);
  if (live) memory["kv_bytes_per_token"] = (*live + tables) / positions;

  const KvSpec spec = kv_spec_of(c);
  const double elements = positions * spec.layers * spec.kv_heads * (spec.k_dim + spec.v_dim);
  const auto payload = number(measured, "kv_payload_bytes");
  const auto scales = number(measured, "kv_scale_bytes");
  if (payload && scales && *payload > 0) {
    memory["kv_bits_per_element"] = 8 * (*payload + *scales) / elements;
  }
}

Json gate_json(const LossGate& gate) {
  Json json;
  if (gate.attend_rel_rms_max) json["attend_rel_rms_max"] = *gate.attend_rel_rms_max;
  if (gate.kld_mean_max) json["kld_mean_max"] = *gate.kld_mean_max;
  if (gate.top1_min) json["top1_min"] = *gate.top1_min;
  return json;  // null without a gate
}

void fill_accuracy(const Case& c, const CaseOutcome& o, Json& record) {
  if (!o.verified.is_object()) return;
  Json& accuracy = record["accuracy"];
  copy(part(o.verified, "correct"), {"rel_rms", "tolerance", "passed"}, accuracy["correct"]);
  Json& loss = accuracy["loss"];
  const Json& measured = part(o.verified, "loss");
  for (auto& [key, value] : loss.items()) value = part(measured, key.c_str());
  accuracy["saturated"] = part(part(o.totals, "memory"), "kv_saturated");
  loss["gate"] = gate_json(c.gate);
  if (!loss["gate"].is_null()) loss["passed"] = missed_gates(c.gate, measured).empty();
}

// What the attention gets done, in 1e9 a second: `per_step` bytes or FLOPs over the mean time of
// the steps. Nothing where no time was taken.
std::optional<double> attend_rate(double per_step, const std::vector<double>& attend_ms) {
  const double total_ms = std::accumulate(attend_ms.begin(), attend_ms.end(), 0.0);
  if (total_ms <= 0) return {};
  return 1e-6 * per_step * static_cast<double>(attend_ms.size()) / total_ms;
}

// The median of the ceilings that the rounds measured as `measured`, and of what the attention
// reached of them: each round against its own ceiling, so that a drift of the machine falls on
// both.
void fill_ceiling(const std::vector<Json>& samples, double per_step, const char* measured,
                  const char* ceiling_key, const std::string& fraction_key, Json& work) {
  std::vector<double> ceilings, fractions;
  for (const Json& s : samples) {
    const auto ceiling = number(part(s, "ceiling"), measured);
    if (!ceiling || *ceiling <= 0) continue;
    ceilings.push_back(*ceiling);
    if (const auto rate = attend_rate(per_step, pooled({s}, "attend_ms"))) {
      fractions.push_back(*rate / *ceiling);
    }
  }
  if (!ceilings.empty()) work[ceiling_key] = *median(ceilings);
  if (fractions.empty()) return;
  const Summary summary = summarize(fractions);
  work[fraction_key] = *summary.p50;
  if (summary.p50_ci95) work[fraction_key + "_ci95"] = *summary.p50_ci95;
}

void fill_work(const Case& c, const Sampling& sampling, const CaseOutcome& o, Json& record) {
  const Prediction predicted = predict(c, sampling.settle_steps);
  Json& work = record["work"];
  copy(part(o.totals, "work"), {"positions_computed"}, work);
  work["kv_bytes_read_per_step"] = predicted.kv_bytes_read_per_step;
  work["weight_bytes_read_per_step"] = predicted.weight_bytes_read_per_step;
  work["flops_per_step"] = predicted.flops_per_step;
  if (!is_timed(c, o)) return;
  if (!keeps_rows(c)) {
    return fill_ceiling(o.samples, predicted.attend_flops_per_step, "fma_gflop_per_s",
                        "fma_gflop_per_s", "flop_fraction", work);
  }
  const auto bytes = static_cast<double>(predicted.kv_bytes_read_per_step);
  if (const auto rate = attend_rate(bytes, pooled(o.samples, "attend_ms"))) {
    work["attend_gb_per_s"] = *rate;
  }
  fill_ceiling(o.samples, bytes, "read_gb_per_s", "read_ceiling_gb_per_s", "bandwidth_fraction",
               work);
  fill_ceiling(o.samples, bytes, "page_read_gb_per_s", "page_read_ceiling_gb_per_s",
               "page_bandwidth_fraction", work);
}

// What happened to the worker in all rounds together; nothing without rounds.
std::optional<Probes> total_probes(const CaseOutcome& o) {
  std::optional<Probes> total;
  for (const Json& s : o.samples) {
    const Probes probes = probes_from_json(part(s, "probes"));
    total = total ? *total + probes : probes;
  }
  return total;
}

}  // namespace

double round_figure(const Json& samples) {
  if (const auto tpot = number(samples, "tpot_ms")) return *tpot;
  return number(samples, "e2e_ms").value_or(0);
}

std::vector<std::string> missed_gates(const LossGate& gate, const Json& loss) {
  std::vector<std::string> missed;
  const auto hold = [&](const char* figure, std::optional<double> bound, bool upper) {
    if (!bound) return;
    const auto value = number(loss, figure);
    if (!value) {
      missed.push_back(fmt::format("{} has a gate but was not measured", figure));
    } else if (upper ? *value > *bound : *value < *bound) {
      missed.push_back(fmt::format("{} {:.4g} misses its gate of {} {:g}", figure, *value,
                                   upper ? "≤" : "≥", *bound));
    }
  };
  hold("attend_rel_rms", gate.attend_rel_rms_max, true);
  hold("kld_mean", gate.kld_mean_max, true);
  hold("top1_agreement", gate.top1_min, false);
  return missed;
}

Json build_record(const Case& c, const Sampling& sampling, const RowIdentity& identity,
                  const MachineState& machine, const CaseOutcome& o) {
  Json record = empty_record();
  record["run_id"] = identity.run_id;
  record["case_id"] = case_id(c);
  record["group_run"] = identity.group_run;
  record["status"] = o.status;
  if (o.reason) record["reason"] = *o.reason;
  record["kernel"] = part(o.ready, "kernel");
  record["digest"] = part(o.verified, "digest");
  record["case"] = to_json(c);

  record["sampling"]["rounds"] = o.samples.size();
  record["sampling"]["interleaved"] = o.interleaved;
  if (o.stop_reason) record["sampling"]["stop_reason"] = *o.stop_reason;

  if (is_timed(c, o)) {
    fill_timing(c, o, record);
    fill_hardware_counters(o, record);
  }
  if (!o.void_timing) fill_instructions(o, record);
  fill_memory(c, o, record);
  fill_accuracy(c, o, record);
  fill_work(c, sampling, o, record);
  const std::optional<Probes> probes = c.counted() ? std::nullopt : total_probes(o);
  if (probes) record["probes"] = to_json(*probes);

  record["events"] = Json::array();
  for (const Json& event : part(o.totals, "events")) record["events"].push_back(event);
  for (const Json& event : o.events) record["events"].push_back(event);
  EnvironmentInput input;
  input.machine = machine;
  input.started = o.started;
  const auto text_of_ready = [&](const char* key) {
    const Json& text = part(o.ready, key);
    return text.is_string() ? text.get<std::string>() : "";
  };
  input.simd = text_of_ready("simd");
  input.blas = text_of_ready("blas");
  input.unstable = o.unstable;
  for (std::string& seen : disturbances(probes.value_or(Probes()), round_figures(o))) {
    input.unstable.push_back(std::move(seen));
  }
  record["env"] = environment(input);
  // The worker may be of another build than this program.
  copy(part(o.ready, "build"), {"git", "compiler", "flags"}, record["env"]);
  return record;
}

}  // namespace kvmark
