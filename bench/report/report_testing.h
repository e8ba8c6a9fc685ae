// Rows that the tests of the report share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/record/stats.h"

namespace kvmark {

// An ok row; `tok_per_s` fixes the timings.
inline nlohmann::ordered_json row(const std::string& engine, const std::string& preset,
                                  double tok_per_s) {
  nlohmann::ordered_json r = empty_record();
  r["run_id"] = "run";
  r["case_id"] = engine;
  r["group_run"] = "group@now";
  r["status"] = "ok";
  r["case"].update(
      {{"engine", engine},  {"preset", preset}, {"device", "cpu"},  {"model", "seed-gqa"},
       {"family", "llama"}, {"level", "model"}, {"weights", "f32"}, {"layers", 4},
       {"d_model", 512},    {"heads", 8},       {"kv_heads", 2},    {"head_dim", 64},
       {"prompt_len", 0},   {"gen_len", 511},   {"seq_len", 511},   {"max_seq_len", 1024},
       {"batch", 1},        {"threads", 2},     {"seed", 1},        {"pool_order", "fresh"},
       {"repeat_kv", false}});
  const std::vector<double> gaps(510, 1e3 / tok_per_s);
  r["latency"]["tpot_ms"] = to_json(summarize(std::vector{1e3 / tok_per_s}));
  r["latency"]["itl_ms"] = to_json(summarize(gaps));
  r["latency"]["e2e_ms"] = to_json(summarize(std::vector{12.5 + 510e3 / tok_per_s}));
  r["samples"] = {{"round", {1e3 / tok_per_s}},
                  {"outlier_rounds", nlohmann::ordered_json::array()},
                  {"itl_ms", gaps},
                  {"itl_stride", 1}};
  r["latency"]["ttft_ms"] = to_json(summarize(std::vector{12.5}));
  r["sampling"]["rounds"] = 7;
  r["throughput"]["decode_tok_per_s"] = tok_per_s;
  r["throughput"]["decode_tok_per_s_per_seq"] = tok_per_s;
  r["memory"]["kv_live_bytes"] = 2093056;
  r["memory"]["kv_reserved_bytes"] = 4194304;
  r["memory"]["kv_bytes_per_token"] = 4096;
  r["accuracy"]["correct"] = {{"rel_rms", 3.1e-7}, {"tolerance", 1e-5}, {"passed", true}};
  r["accuracy"]["loss"]["attend_rel_rms"] = 0.00042;
  r["env"]["cpu"] = "Some CPU";
  r["env"]["compiler"] = "gcc 12.2.0";
  r["env"]["unstable"] = nlohmann::ordered_json::array();
  return r;
}

inline nlohmann::ordered_json bad(const std::string& engine, const std::string& status,
                                  const std::string& reason) {
  nlohmann::ordered_json r = row(engine, "", 1);
  r["status"] = status;
  r["reason"] = reason;
  r["latency"] = empty_record()["latency"];
  r["accuracy"]["correct"]["passed"] = nullptr;
  return r;
}

inline std::vector<nlohmann::ordered_json> quickstart() {
  return {row("recompute", "recompute", 12.5), row("contiguous/f32", "contiguous", 1000),
          row("contiguous/f16", "fp16", 1250)};
}

}  // namespace kvmark
