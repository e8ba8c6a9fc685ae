#include "bench/doctor/noise_floor.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "bench/record/clock.h"
#include "bench/record/probes.h"
#include "bench/record/stats.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

using Json = nlohmann::ordered_json;

// Of a visit, as the gate's.
constexpr int kSettleSteps = 8, kMinSteps = 40;
constexpr double kMinMs = 200;
constexpr double kDisturbed = 0.02;
constexpr int kRepeatOneIn = 4;
constexpr double kPatienceSeconds = 60;

// Of the gate's decision.
constexpr int kScreenPairs = 8, kRows = 8;
constexpr double kScreenAt = 0.015, kSlowerAt = 0.025, kBoundAt = 0.005;
constexpr double kFalseAlarm = 0.005;
constexpr double kPower = 0.95;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The x in [low, high] where a rising function reaches `value`.
template <typename Rising>
double solve(Rising f, double value, double low, double high) {
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < value ? low : high) = middle;
  }
  return high;
}

// Standard deviation from the differences of neighbours (von Neumann et al., "The mean square
// successive difference", 1941): a drift that is slow against a visit does not enter.
double successive_sigma(const std::vector<double>& values) {
  double sum = 0;
  for (size_t i = 1; i < values.size(); ++i) sum += std::pow(values[i] - values[i - 1], 2);
  return std::sqrt(sum / (2 * static_cast<double>(values.size() - 1)));
}

}  // namespace

NoiseVisit run_visit(const WorkerCommand& command, const Case& c) {
  check(c.gen_len > 1, "a visit of a case without decode steps");
  WorkerProcess worker(command, "doctor", "/dev/null");
  worker.request(
      {{"cmd", "prepare"}, {"case", to_json(c)}, {"sampling", {{"settle_steps", kSettleSteps}}}},
      "ready", kPatienceSeconds);
  std::vector<double> steps_ms;
  double total_ms = 0, lost_ms = 0;
  for (int round = 0; total_ms < kMinMs || std::ssize(steps_ms) < kMinSteps; ++round) {
    const Json samples =
        worker.request({{"cmd", "round"}, {"index", round}}, "samples", kPatienceSeconds);
    const Probes probes = probes_from_json(samples.at("probes"));
    lost_ms += probes.run_delay_ms.value_or(0) + probes.steal_ms.value_or(0);
    for (const double ms : samples.at("itl_ms")) steps_ms.push_back(ms);
    total_ms += samples.at("decode_ms").get<double>();
  }
  return {*summarize(steps_ms).p50, lost_ms / total_ms};
}

NoiseFloor measure_noise(const std::function<NoiseVisit()>& visit, const VisitCount& count) {
  check(count.fewest >= 3, "a noise floor of {} visits: expected at least 3", count.fewest);
  NoiseFloor floor;
  std::vector<double> logs;
  const int64_t start = now_ns();
  const auto enough = [&] {
    const int visits = static_cast<int>(logs.size());
    const double seconds = ms_from_ns(now_ns() - start) * 1e-3;
    return visits >= count.most || (visits >= count.fewest && seconds > count.budget_s);
  };
  try {
    while (!enough()) {
      const NoiseVisit v = visit();
      if (v.disturbed > kDisturbed && floor.repeated < count.most / kRepeatOneIn) {
        ++floor.repeated;
        continue;
      }
      logs.push_back(std::log(v.step_ms));
    }
  } catch (const WorkerFailed& e) {
    floor.missing_because = e.what();
    return floor;
  }
  floor.visits = static_cast<int>(logs.size());
  floor.visit_sigma = successive_sigma(logs);
  floor.sigma_with_drift = summarize(logs).stddev;
  return floor;
}

double smallest_slowdown(double visit_sigma, int pairs) {
  if (visit_sigma == 0) return kSlowerAt;
  const double unit = std::sqrt(std::numbers::pi / 3) * std::numbers::sqrt2 * visit_sigma;
  const double screen = unit / std::sqrt(kScreenPairs), confirm = unit / std::sqrt(pairs);
  const double z = solve(normal_cdf, 1 - kFalseAlarm / kRows, 0, 10);
  const double decide_at = std::max(kSlowerAt, kBoundAt + z * confirm);
  const auto found = [&](double slowdown) {  // the pairs that confirm are fresh: independent
    return normal_cdf((slowdown - kScreenAt) / screen) *
           normal_cdf((slowdown - decide_at) / confirm);
  };
  return solve(found, kPower, 0, decide_at + 10 * screen);
}

}  // namespace kvmark
