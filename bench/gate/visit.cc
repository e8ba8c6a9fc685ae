#include "bench/gate/visit.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "bench/record/clock.h"
#include "bench/record/probes.h"
#include "bench/record/stats.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDisturbed = 0.02;    // part of a visit that was lost to others
constexpr double kMostRepeats = 0.25;  // of the visits
constexpr int kMostPadding = 4096;     // bytes, a page: where a stack begins within it
constexpr const char* kPadding = "KVMARK_PADDING";

// While it lives, workers that are started inherit an environment of another length. What runs
// faster or slower because of where its stack happens to lie then differs from visit to visit, and
// not from build to build.
class PaddedEnvironment {
 public:
  explicit PaddedEnvironment(std::mt19937_64& random) {
    const int length = std::uniform_int_distribution<int>(0, kMostPadding)(random);
    setenv(kPadding, std::string(length, 'x').c_str(), 1);
  }
  ~PaddedEnvironment() { unsetenv(kPadding); }
};

double seconds_since(int64_t from_ns) { return 1e-9 * static_cast<double>(now_ns() - from_ns); }

// The case's worker, prepared.
class Worker {
 public:
  Worker(const Binary& binary, const Case& c, const VisitOptions& options)
      : options_(options),
        predicted_(predict(c, options.settle_steps)),
        process_(binary.worker, case_label(c), options.log_path) {
    Json request = {{"cmd", "prepare"},
                    {"case", to_json(c)},
                    {"sampling", {{"settle_steps", options.settle_steps}}}};
    if (binary.extra_work > 0) request["extra_work"] = binary.extra_work;
    ready_ = ask(request, "ready", predicted_.once_s);
  }

  const Json& ready() const { return ready_; }

  Json verify() {
    Json verified = ask({{"cmd", "verify"}, {"reference", nullptr}}, "verified",
                        predicted_.once_s + predicted_.round_s);
    check_verified(verified);
    return verified;
  }

  Json round(int index) {
    const Json request = {{"cmd", "round"}, {"index", index}};
    Json samples = ask(request, "samples", 2 * predicted_.once_s + 2 * predicted_.round_s);
    check_samples(samples);
    return samples;
  }

 private:
  Json ask(const Json& request, const char* expected, double predicted_s) {
    return process_.request(request, expected, options_.patience.seconds(predicted_s),
                            options_.tick);
  }

  const VisitOptions& options_;
  const Prediction predicted_;
  WorkerProcess process_;
  Json ready_;
};

std::optional<double> run_delay_ms(const Json& samples) {
  const Json probes = samples.contains("probes") ? samples["probes"] : Json();
  return probes.is_object() ? probes_from_json(probes).run_delay_ms : std::nullopt;
}

// The first line of a program's `--version`; nothing where it does not end with 0.
std::optional<std::string> version_of(const std::string& path) {
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  FILE* pipe = popen(fmt::format("'{}' --version 2>/dev/null </dev/null", quoted).c_str(), "r");
  if (!pipe) return {};
  std::string text;
  std::array<char, 256> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
  if (pclose(pipe) != 0) return {};
  return text.substr(0, text.find('\n'));
}

}  // namespace

Binary open_binary(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    throw UsageError(fmt::format("{}: there is no such file; expected a build of kvmark", path));
  }
  if (!S_ISREG(file.st_mode) || access(path.c_str(), X_OK) != 0) {
    throw UsageError(fmt::format("{}: cannot be run; expected a build of kvmark", path));
  }
  const std::string absolute = std::filesystem::absolute(path);
  const auto version = version_of(absolute);
  if (!version || version->rfind("kvmark", 0) != 0) {
    throw UsageError(
        fmt::format("{}: is no kvmark: `--version` gave {}", path,
                    version ? fmt::format("\"{}\"", version->substr(0, 80)) : "no answer"));
  }
  return {
      path,
      {absolute, "worker"},
      0,
      fmt::format("{}, {} bytes, changed at {} s", *version, file.st_size, file.st_mtim.tv_sec)};
}

Visit take_visit(const Binary& binary, const Case& c, const VisitOptions& options,
                 std::mt19937_64& random) {
  const int64_t from = now_ns();
  const auto stolen_before = steal_ms();
  const PaddedEnvironment padding(random);
  Worker worker(binary, c, options);

  Visit visit;
  visit.start_ms = 1e3 * seconds_since(from);
  std::vector<double> steps_ms;
  double steps_s = 0, lost_ms = 0;
  bool lost_is_known = true;
  for (int round = 0;
       static_cast<int>(steps_ms.size()) < options.min_steps || steps_s < options.min_steps_s;
       ++round) {
    const Json samples = worker.round(round);
    const std::string digest = samples["digest"];
    if (round > 0 && digest != visit.digest) {
      throw ResultChanged(
          fmt::format("round {} computed something else (digest {}) than the first "
                      "({})",
                      round + 1, digest, visit.digest));
    }
    visit.digest = digest;
    if (samples["itl_ms"].empty()) throw WorkerFailed("a round without decode steps");
    for (const Json& step : samples["itl_ms"]) {
      steps_ms.push_back(step.get<double>());
      steps_s += 1e-3 * steps_ms.back();
    }
    const auto delay_ms = run_delay_ms(samples);
    lost_is_known = lost_is_known && delay_ms;
    lost_ms += delay_ms.value_or(0);
  }
  const auto stolen_after = steal_ms();
  if (stolen_before && stolen_after) lost_ms += *stolen_after - *stolen_before;

  visit.steps = static_cast<int>(steps_ms.size());
  const Summary summary = summarize(steps_ms);
  visit.step_ms = *summary.p50;
  visit.p99_ms = summary.p99;
  if (lost_is_known) visit.disturbance = 1e-3 * lost_ms / seconds_since(from);
  if (visit.step_ms <= 0) throw WorkerFailed("its steps take no time");
  return visit;
}

std::optional<std::string> why_unknown(const Binary& binary, const Case& c,
                                       const VisitOptions& options) {
  try {
    const Worker worker(binary, c, options);
    const Json id = worker.ready().contains("case_id") ? worker.ready()["case_id"] : Json();
    if (id.is_string() && id != case_id(c)) return "it reads another case: it ignores a key";
    return {};
  } catch (const WorkerFailed& e) {
    if (e.error_kind != "usage") throw;
    return e.what();
  }
}

std::string verified_digest(const Binary& binary, const Case& c, const VisitOptions& options) {
  const Json verified = Worker(binary, c, options).verify();
  if (!verified["correct"]["passed"].get<bool>()) {
    throw WorkerFailed(why_incorrect(verified["correct"]));
  }
  return verified["digest"];
}

VisitPairs::VisitPairs(const Binary& base, const Binary& now, const VisitOptions& options,
                       uint64_t seed)
    : base_(base), now_(now), options_(options), random_(seed) {}

double VisitPairs::Pair::difference() const { return std::log(now.step_ms / base.step_ms); }

VisitPairs::Pair VisitPairs::take(const Case& c, int index) {
  Pair pair;
  pair.base_first = index % 2 == 0;
  for (const bool is_base : {pair.base_first, !pair.base_first}) {
    try {
      (is_base ? pair.base : pair.now) = undisturbed(is_base ? base_ : now_, c);
    } catch (const ResultChanged& e) {
      throw SideFailed(e.what(), is_base, "invalid");
    } catch (const WorkerFailed& e) {
      throw SideFailed(e.what(), is_base, "failed");
    }
  }
  return pair;
}

Visit VisitPairs::undisturbed(const Binary& binary, const Case& c) {
  for (;;) {
    const Visit visit = take_visit(binary, c, options_, random_);
    ++visits_;
    if (!visit.disturbance) ++unknown_;
    const bool disturbed = visit.disturbance.value_or(0) > kDisturbed;
    if (!disturbed || repeats_ + 1 > kMostRepeats * visits_) return visit;
    ++repeats_;
  }
}

Plan timed_plan(const std::string& config, const std::vector<Override>& overrides) {
  Plan plan = load_plan(config, overrides);
  if (plan.counted()) {
    throw UsageError(fmt::format(
        "{}: its `count` gives no times to judge by; leave it out, or count both builds "
        "by `kvmark run` and compare the two runs by `kvmark compare`",
        config));
  }
  return plan;
}

}  // namespace kvmark
