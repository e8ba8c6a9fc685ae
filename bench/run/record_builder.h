// A case and what its worker said → its record.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/case.h"
#include "bench/plan/plan.h"
#include "bench/record/environment.h"

namespace kvmark {

// All that is known of a case when it ends; what was not reached is null or empty. The replies are
// those of protocol.md.
struct CaseOutcome {
  using Json = nlohmann::ordered_json;

  std::string status = "ok";  // ok | skipped | failed | invalid
  std::optional<std::string> reason;
  std::string started;  // when its worker was, as from utc_now(); "": never
  Json ready, verified, totals;
  std::optional<int64_t> instructions;  // of all timed steps of a counted case
  std::vector<Json> samples;            // one a round, in order
  bool void_timing = false;             // the figures are of a wrong computation: leave them out
  bool interleaved = false;  // its rounds alternated with those of the group's other cases
  std::optional<std::string> stop_reason;  // width | cap | budget | single
  std::vector<Json> events;                // of the harness, besides the engine's own
  std::vector<std::string> unstable;  // why its timings deserve doubt, besides the environment's
};

// What ties rows together.
struct RowIdentity {
  std::string run_id;
  std::string group_run;  // rows of one execution of a group
};

// Gaps kept for plots; a longer round keeps every `itl_stride`-th.
inline constexpr int kMaxGaps = 4096;

// The figure of a round that sampling and the record's `samples.round` are about: TPOT, or the
// whole round where only one token is generated.
double round_figure(const nlohmann::ordered_json& samples);

// The gates that the loss misses, in words; empty: none. A gate on a figure that was not measured
// counts as missed.
std::vector<std::string> missed_gates(const LossGate& gate, const nlohmann::ordered_json& loss);

// A record that validate_record() accepts, whatever is missing. `machine`: as the run found it.
nlohmann::ordered_json build_record(const Case& c, const Sampling& sampling,
                                    const RowIdentity& identity, const MachineState& machine,
                                    const CaseOutcome& outcome);

}  // namespace kvmark
