#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/doctor/diagnosis.h"
#include "bench/record/or_null.h"
#include "bench/report/format.h"
#include "bench/report/report.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "kvmark-doctor/1";
constexpr size_t kNameColumns = 10;  // the longest finding's name
constexpr const char* kIndent = "                  ";

std::string findings_text(const std::vector<MachineFinding>& findings) {
  std::string text;
  for (const MachineFinding& f : findings) {
    text += fmt::format("{}  {}  {}\n", severity_name(f.severity), pad_right(f.name, kNameColumns),
                        f.found);
    if (!f.advice.empty()) text += fmt::format("{}→ {}\n", kIndent, f.advice);
  }
  return text;
}

struct Rate {
  std::string name;
  int threads;
  double value;
};

// A row a name, a column a thread count; rates of a name stand one behind the other.
std::string rate_table(std::string_view title, const std::vector<Rate>& rates) {
  constexpr size_t kName = 24, kValue = 12;
  std::string head = pad_right(title, kName), rows;
  for (size_t i = 0; i < rates.size(); ++i) {
    const Rate& rate = rates[i];
    if (rate.name == rates[0].name) {
      head +=
          pad_left(fmt::format("{} thread{}", rate.threads, rate.threads == 1 ? "" : "s"), kValue);
    }
    if (i == 0 || rate.name != rates[i - 1].name) {
      rows += '\n';
      rows += pad_right(rate.name, kName);
    }
    rows += pad_left(human_number(rate.value), kValue);
  }
  return head + rows + "\n";
}

std::vector<Rate> read_rates(const Diagnosis& d) {
  std::vector<Rate> rates;
  for (const ReadSpeed& s : d.reads) {
    const std::string bytes = human_bytes(static_cast<double>(s.bytes));
    rates.push_back({fmt::format("{} ({})", s.memory, bytes), s.threads, s.gb_per_s});
  }
  return rates;
}

std::vector<Rate> fma_rates(const Diagnosis& d) {
  std::vector<Rate> rates;
  for (const FmaSpeed& s : d.fma) rates.push_back({s.simd, s.threads, s.gflop_per_s});
  return rates;
}

Json machine_json(const Diagnosis& d) {
  const MachineFacts& m = d.machine;
  Json caches = Json::array();
  for (const CacheLevel& c : m.caches) {
    caches.push_back({{"level", c.level}, {"bytes", c.bytes}, {"cpus", c.cpus}});
  }
  return {{"processor", or_null(m.processor)},
          {"cpus_allowed", or_null(m.state.cores)},
          {"cpus_present", or_null(m.cpus_present)},
          {"physical_cores", or_null(m.physical_cores)},
          {"numa_nodes", or_null(m.numa_nodes)},
          {"simd", d.simd_in_use},
          {"simd_targets", d.simd_targets},
          {"isa", m.isa},
          {"caches", std::move(caches)},
          {"governor", or_null(m.state.governor)},
          {"turbo", or_null(m.turbo)},
          {"lowest_core_ghz", or_null(d.probes.lowest_core_ghz)},
          {"highest_core_ghz", or_null(d.probes.highest_core_ghz)},
          {"max_frequency_ghz", or_null(m.max_frequency_ghz)},
          {"huge_pages", or_null(m.huge_pages)},
          {"huge_page_defrag", or_null(m.huge_page_defrag)},
          {"load", or_null(m.state.load)},
          {"steal_share", or_null(steal_share(d))},
          {"cpu_quota_cores", or_null(m.state.cpu_quota)},
          {"throttled_ms", or_null(d.probes.throttled_ms)},
          {"memory_bytes", or_null(m.state.memory_bytes)},
          {"memory_limit_bytes", or_null(m.memory_limit_bytes)},
          {"swap_used_bytes", or_null(m.swap_used_bytes)},
          {"container", d.container},
          {"vm", or_null(m.state.vm)},
          {"clock_source", or_null(m.clock_source)},
          {"perf_event_paranoid", or_null(m.perf_event_paranoid)},
          {"counters", or_null(m.counters)},
          {"blas", d.blas},
          {"openblas_coretype", or_null(m.state.blas_coretype)},
          {"plots", d.plots},
          {"build", d.build}};
}

Json ceilings_json(const Diagnosis& d) {
  Json reads = Json::array(), fma = Json::array();
  for (const ReadSpeed& s : d.reads) {
    reads.push_back({{"memory", s.memory},
                     {"bytes", s.bytes},
                     {"threads", s.threads},
                     {"read_gb_per_s", s.gb_per_s}});
  }
  for (const FmaSpeed& s : d.fma) {
    fma.push_back({{"simd", s.simd}, {"threads", s.threads}, {"fma_gflop_per_s", s.gflop_per_s}});
  }
  return {{"read", std::move(reads)}, {"fma", std::move(fma)}};
}

Json noise_json(const NoiseFloor& n) {
  const auto smallest = [&](int pairs) {
    return n.visit_sigma ? Json(smallest_slowdown(*n.visit_sigma, pairs)) : Json();
  };
  return {{"visits", n.visits},
          {"repeated", n.repeated},
          {"visit_sigma", or_null(n.visit_sigma)},
          {"sigma_with_drift", or_null(n.sigma_with_drift)},
          {"smallest_slowdown_24_pairs", smallest(24)},
          {"smallest_slowdown_48_pairs", smallest(48)},
          {"worker_start_ms", or_null(n.worker_start_ms)},
          {"missing_because", or_null(n.missing_because)}};
}

}  // namespace

std::string to_text(const Diagnosis& d) {
  std::string text = fmt::format("{}\n\n", d.machine.processor.value_or("an unnamed processor"));
  text += findings_text(judge(d)) + "\n";
  text += rate_table("reading, GB/s", read_rates(d)) + "\n";
  text += rate_table("f32 arithmetic, GFLOP/s", fma_rates(d));
  return text + "\n" + verdict(d.noise) + "\n";
}

Json to_json(const Diagnosis& d) {
  Json findings = Json::array();
  for (const MachineFinding& f : judge(d)) {
    findings.push_back({{"name", f.name},
                        {"found", f.found},
                        {"severity", severity_name(f.severity)},
                        {"advice", f.advice.empty() ? Json() : Json(f.advice)}});
  }
  return {
      {"schema", kSchema},
      {"machine", machine_json(d)},
      {"clock", {{"overhead_ns", d.clock.overhead_ns}, {"resolution_ns", d.clock.resolution_ns}}},
      {"harness",
       {{"step_ms", d.harness.step_ms},
        {"clock_reads_per_step", d.harness.clock_reads},
        {"step_cost_share", d.harness.share},
        {"step_cost_share_ci95", d.harness.share_ci95}}},
      {"ceilings", ceilings_json(d)},
      {"noise", noise_json(d.noise)},
      {"findings", std::move(findings)},
      {"verdict", {{"fit_for_gate", or_null(fit_for_gate(d.noise))}, {"text", verdict(d.noise)}}}};
}

}  // namespace kvmark
