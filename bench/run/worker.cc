#include "bench/run/worker.h"

#include <errno.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>

#include "bench/plan/case.h"
#include "bench/record/environment.h"
#include "bench/record/or_null.h"
#include "bench/record/probes.h"
#include "bench/run/ceilings.h"
#include "bench/run/verify.h"
#include "bench/run/workload.h"
#include "engines/codecs/codec.h"
#include "engines/core/check.h"
#include "engines/cpu/cpu_backend.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Lines from and to file descriptors, whole.
class Lines {
 public:
  Lines(int in, int out) : in_(in), out_(out) {}

  std::optional<std::string> next() {
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char chunk[65536];
      const ssize_t n = ::read(in_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      buffer_.append(chunk, n);
    }
  }

  void send(const Json& reply) {
    const std::string line = reply.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t n = ::write(out_, line.data() + sent, line.size() - sent);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw RuntimeError("the parent has gone away");
      sent += n;
    }
  }

 private:
  int in_, out_;
  std::string buffer_;
};

// Linux keeps the highest resident size of a process until it is told to begin anew.
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

class Worker {
 public:
  Json answer(const Json& request) {
    const std::string cmd = request.at("cmd");
    if (cmd == "prepare") return prepare(request);
    if (!workload_) throw LogicError(fmt::format("'{}' before 'prepare'", cmd));
    if (cmd == "reference") return reference(request.at("path"));
    if (cmd == "verify") return verify(request);
    if (cmd == "round") return round();
    if (cmd == "finish") return finish();
    throw LogicError(fmt::format("unknown request '{}'", cmd));
  }

  // Leaves the cores to the other workers.
  void rest() {
    if (workload_) workload_->pool().park();
  }

 private:
  Json prepare(const Json& request) {
    const Case c = case_from_json(request.at("case"));
    workload_ = std::make_unique<Workload>(c, request.at("sampling").at("settle_steps"),
                                           request.value("extra_work", 0.0));
    return {{"reply", "ready"},
            {"case_id", case_id(c)},
            {"build", build_identity()},
            {"kernel", workload_->engine().kernel()},
            {"simd", simd_target()},
            {"blas", blas_core()},
            {"weight_bytes", workload_->weight_bytes()}};
  }

  Json reference(const std::string& path) {
    const Reference made = make_reference(*workload_);
    made.write(path);
    return {{"reply", "referenced"},
            {"bytes", (made.outputs.size() + made.logits.size()) * sizeof(float)}};
  }

  Json verify(const Json& request) {
    Json reply = {{"reply", "verified"}};
    reply.update(request.contains("write") ? verify_and_write(request["write"])
                                           : verify_against(request.at("reference")));
    const Case& c = workload_->spec();
    ceilings_.emplace(c, predict(c, 0), workload_->pool());
    return reply;
  }

  Json verify_against(const Json& path) {
    std::optional<Reference> reference;
    if (!path.is_null()) reference = Reference::read(path);
    return kvmark::verify(*workload_, reference ? &*reference : nullptr);
  }

  Json verify_and_write(const std::string& path) {
    Reference made;
    Json verified = verify_reference(*workload_, made);
    made.write(path);
    return verified;
  }

  Json round() {
    // What verifying took is not the engine's: the peak is that of the rounds.
    if (!last_round_) reset_peak_memory();
    const RoundSamples& samples = last_round_.emplace(workload_->round());
    const Case& c = workload_->spec();
    const bool model = workload_->model() != nullptr;
    const double decode = std::accumulate(samples.itl_ms.begin(), samples.itl_ms.end(), 0.0);
    Json reply = {{"reply", "samples"}, {"digest", samples.digest}};
    reply["ttft_ms"] = model ? Json(samples.first_token_ms) : Json();
    reply["itl_ms"] = samples.itl_ms;
    reply["attend_ms"] = samples.attend_ms;
    reply["tpot_ms"] = samples.itl_ms.empty() ? Json() : Json(decode / samples.itl_ms.size());
    reply["e2e_ms"] = model ? Json(samples.first_token_ms + decode) : Json();
    reply["prefill_ms"] = model && c.has_prompt() ? Json(samples.first_token_ms) : Json();
    reply["decode_ms"] = decode;
    reply["profile"] = samples.profile;
    reply["probes"] = to_json(samples.probes);
    reply["counters"] = samples.itl_ms.empty()
                            ? Json()
                            : counters_json(samples.counts, static_cast<int>(samples.itl_ms.size()),
                                            workload_->counters().missing_because());
    reply["ceiling"] = ceilings_ ? ceilings_->measure() : Json();
    return reply;
  }

  Json finish() {
    if (!last_round_) throw LogicError("'finish' before a 'round'");
    const Footprint& f = last_round_->footprint;
    // The ceilings' memory was there all the time and is not the engine's.
    std::optional<int64_t> peak_rss = process_memory().peak_rss_bytes;
    if (peak_rss && ceilings_) *peak_rss -= ceilings_->bytes();
    ceilings_.reset();
    Json timeline = Json::array();
    for (const MemoryPoint& point : workload_->timeline()) {
      timeline.push_back({{"position", point.position},
                          {"live_bytes", point.footprint.live_bytes},
                          {"reserved_bytes", point.footprint.reserved_bytes}});
    }
    Json events = Json::array();
    for (const Event& event : last_round_->events) {
      events.push_back(
          {{"kind", event.kind}, {"position", event.position}, {"bytes", event.bytes}});
    }
    return {{"reply", "totals"},
            {"memory",
             {{"kv_live_bytes", f.live_bytes},
              {"kv_reserved_bytes", f.reserved_bytes},
              {"kv_peak_bytes", f.peak_bytes},
              {"kv_payload_bytes", f.payload_bytes},
              {"kv_scale_bytes", f.scale_bytes},
              {"kv_table_bytes", f.table_bytes},
              {"kv_saturated", workload_->clamped()},
              {"weight_bytes", workload_->weight_bytes()},
              {"peak_rss_bytes", or_null(peak_rss)},
              {"huge_page_bytes", or_null(process_memory().huge_page_bytes)},
              {"timeline", std::move(timeline)}}},
            {"work", {{"positions_computed", last_round_->positions_computed}}},
            {"events", std::move(events)}};
  }

  std::unique_ptr<Workload> workload_;
  std::optional<Ceilings> ceilings_;  // made when the case has been verified
  std::optional<RoundSamples> last_round_;
};

Json error_reply(const char* kind, const std::string& reason) {
  return {{"reply", "error"}, {"kind", kind}, {"reason", reason}};
}

// Every exception becomes a reply, so that the parent has a reason for the row.
Json answer_or_error(Worker& worker, const std::string& line) {
  try {
    return worker.answer(Json::parse(line));
  } catch (const UsageError& e) {
    return error_reply("usage", e.what());
  } catch (const std::bad_alloc&) {
    return error_reply("memory", "out of memory");
  } catch (const std::exception& e) {
    return error_reply("runtime", e.what());
  }
}

}  // namespace

int run_worker(int in_fd, int out_fd) {
  Lines lines(in_fd, out_fd);
  Worker worker;
  while (const auto line = lines.next()) {
    const Json reply = answer_or_error(worker, *line);
    worker.rest();
    lines.send(reply);
    if (reply["reply"] == "error") return 1;
    if (reply["reply"] == "totals") return 0;
  }
  return 0;
}

}  // namespace kvmark
