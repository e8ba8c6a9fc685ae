// Made-up records for the tests of comparisons.
#pragma once

#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {

// An ok row of `rounds` rounds around `tpot_ms`, ±1 %.
inline nlohmann::ordered_json compared_row(const std::string& case_id, double tpot_ms,
                                           int rounds = 7) {
  nlohmann::ordered_json r = empty_record();
  r["run_id"] = "run";
  r["case_id"] = case_id;
  r["status"] = "ok";
  r["digest"] = "d1";
  r["case"].update({{"engine", "paged:16/" + case_id},
                    {"model", "seed-gqa"},
                    {"level", "model"},
                    {"prompt_len", 16},
                    {"gen_len", 32},
                    {"batch", 1},
                    {"threads", 2}});
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) samples.push_back(tpot_ms * (0.99 + 0.02 * i / rounds));
  r["sampling"]["rounds"] = rounds;
  r["latency"]["tpot_ms"] = to_json(summarize(samples));
  r["latency"]["tpot_ms"]["p50"] = tpot_ms;
  r["latency"]["e2e_ms"] = to_json(summarize(std::vector{32 * tpot_ms}));
  r["memory"]["kv_live_bytes"] = 4096;
  r["accuracy"]["correct"] = {{"rel_rms", 3e-7}, {"tolerance", 1e-5}, {"passed", true}};
  r["accuracy"]["loss"]["attend_rel_rms"] = 0.001;
  r["env"].update({{"git", "abc"},
                   {"cpu", "Some CPU"},
                   {"cores", 2},
                   {"simd", "AVX2"},
                   {"compiler", "gcc 12.2.0"}});
  return r;
}

inline nlohmann::ordered_json bad_row(const std::string& case_id, const std::string& status,
                                      const std::string& reason) {
  nlohmann::ordered_json r = compared_row(case_id, 1);
  r["status"] = status;
  r["reason"] = reason;
  r["latency"] = empty_record()["latency"];
  return r;
}

}  // namespace kvmark
