#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "bench/run/fake_worker_testing.h"

namespace kvmark {
namespace {

using Json = nlohmann::json;

class FakeWorker {
 public:
  explicit FakeWorker(const Json& script) : script_(script) {}

  // Answers one request; the exit code when that was the last.
  std::optional<int> answer(const Json& request) {
    const std::string cmd = request["cmd"];
    if (cmd == "prepare") {
      engine_ = request["case"]["engine"];
      gen_len_ = request["case"].value("gen_len", 4);
      rules_ = script_.value("engines", Json::object()).value(engine_, Json::object());
    }
    if (script_.contains("log")) {
      std::ofstream(script_["log"].get<std::string>(), std::ios::app)
          << engine_ << " " << cmd << "\n";
    }
    fault_ = "";
    if (rules_.value("at", "") == cmd) {
      const bool hit = !rules_.contains("index") || rules_["index"] == request.value("index", 0);
      if (hit) fault_ = rules_.value("do", "");
    }
    if (fault_ == "kill") raise(SIGKILL);
    if (fault_ == "silent") pause();
    if (fault_ == "interrupt") kill(getppid(), SIGINT);
    if (fault_ == "half") return std::cout << "{\"reply\":\"sam" << std::flush, 0;
    if (fault_ == "error") {
      say({{"reply", "error"}, {"kind", "memory"}, {"reason", "out of memory"}});
      return 1;
    }
    if (fault_ == "unknown") {
      say({{"reply", "error"}, {"kind", "usage"}, {"reason", "there is no such engine"}});
      return 1;
    }
    if (fault_ == "exit") return std::cerr << "first line\nboom: a bad thing\n", 7;
    if (fault_ == "noise") {
      for (int i = 0; i < 20000; ++i)
        std::cerr << "a log line that nobody asked for, " << i << "\n";
    }
    if (fault_ == "babble") {
      std::cout << "hello, I am a worker\n" << std::flush;
      return {};
    }
    say(fault_ == "wrong" ? Json{{"reply", "totals"}} : reply(cmd, request));
    if (fault_ == "chatter") std::cout << "by the way\n" << std::flush;
    if (cmd == "finish") return fault_ == "unclean" ? 5 : 0;
    return {};
  }

 private:
  static void say(const Json& json) { std::cout << json.dump() << "\n" << std::flush; }

  Json reply(const std::string& cmd, const Json& request) {
    if (cmd == "prepare") {
      Json ready = {{"reply", "ready"},
                    {"kernel", "generic"},
                    {"simd", "FAKE"},
                    {"blas", "FakeLake"},
                    {"weight_bytes", 1000}};
      if (rules_.contains("case_id")) ready["case_id"] = rules_["case_id"];
      return ready;
    }
    if (cmd == "reference") {
      std::ofstream(request["path"].get<std::string>()) << "reference";
      return {{"reply", "referenced"}, {"bytes", 9}};
    }
    if (cmd == "verify") {
      verified_ = true;
      return verified(request);
    }
    if (cmd == "round") return samples(request["index"]);
    return totals();
  }

  Json verified(const Json& request) {
    const bool right = fault_ != "incorrect";
    Json loss;
    if (request.contains("write")) {
      std::ofstream(request["write"].get<std::string>()) << "reference";
      loss = {{"reference", "full/f32"}, {"attend_rel_rms", 0.0}};
    } else if (!request["reference"].is_null()) {
      std::ifstream file(request["reference"].get<std::string>());
      std::string text;
      file >> text;
      if (text != "reference") return {{"reply", "error"}, {"reason", "no reference there"}};
      loss = {{"reference", "full/f32"}, {"attend_rel_rms", 0.01}};
    }
    return {{"reply", "verified"},
            {"digest", "d1"},
            {"correct", {{"rel_rms", right ? 1e-7 : 0.5}, {"tolerance", 1e-5}, {"passed", right}}},
            {"loss", loss}};
  }

  Json samples(int index) {
    const double tpot = rules_.value("tpot", 2.0) + 0.001 * (index % 3);
    const int steps = gen_len_ - 1;
    Json reply = {{"reply", "samples"},
                  {"digest", digest()},
                  {"ttft_ms", 5.0},
                  {"itl_ms", std::vector<double>(steps, tpot)},
                  {"attend_ms", std::vector<double>(steps, tpot / 2)},
                  {"tpot_ms", steps > 0 ? Json(tpot) : Json()},
                  {"e2e_ms", 5.0 + steps * tpot},
                  {"prefill_ms", 5.0},
                  {"decode_ms", steps * tpot},
                  {"profile", {{"attend_ms", tpot / 2}, {"other_ms", tpot / 2}}},
                  {"probes",
                   {{"run_delay_ms", rules_.contains("delay_ms") ? rules_["delay_ms"] : Json(0.0)},
                    {"major_faults", 0},
                    {"minor_faults", 3}}},
                  {"ceiling", {{"read_gb_per_s", 10.0}}}};
    if (fault_ == "shapeless") reply["itl_ms"] = "many";
    return reply;
  }

  std::string digest() const {
    if (fault_ == "digest") return "d2";
    return verified_ ? "d1" : rules_.value("timed_digest", "d1");
  }

  Json totals() const {
    return {{"reply", "totals"},
            {"memory",
             {{"kv_live_bytes", rules_.value("live_bytes", 1500)},
              {"kv_reserved_bytes", 2000},
              {"kv_peak_bytes", 2000},
              {"kv_payload_bytes", 1400},
              {"kv_scale_bytes", 100},
              {"kv_table_bytes", 40},
              {"kv_saturated", 0},
              {"weight_bytes", 1000},
              {"peak_rss_bytes", 5000},
              {"timeline", Json::array()}}},
            {"work", {{"positions_computed", 7}}},
            {"events", Json::array({{{"kind", "grow"}, {"position", 3}, {"bytes", 10}}})}};
  }

  const Json& script_;
  Json rules_;
  std::string engine_, fault_;
  int gen_len_ = 4;
  bool verified_ = false;
};

}  // namespace

WorkerCommand fake_worker(const Json& script) {
  return {"/proc/self/exe", "--fake-worker", script.dump()};
}

int run_fake_worker(const std::string& text) {
  const Json script = Json::parse(text);
  if (script.value("deaf", false)) pause();
  FakeWorker worker(script);
  for (std::string line; std::getline(std::cin, line);) {
    if (const auto code = worker.answer(Json::parse(line))) return *code;
  }
  return 0;
}

}  // namespace kvmark

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--fake-worker") {
    return kvmark::run_fake_worker(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
