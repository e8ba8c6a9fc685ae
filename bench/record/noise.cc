#include "bench/record/noise.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/record/stats.h"

namespace kvmark {
namespace {

// ---- The dip ----

using Knots = std::vector<size_t>;

// The samples' distribution in counts: point j is (x[j], j), x ascending.
class Distribution {
 public:
  explicit Distribution(std::span<const double> samples) : x_(samples.begin(), samples.end()) {
    std::sort(x_.begin(), x_.end());
  }

  size_t size() const { return x_.size(); }

  // The corners of the convex line below points [low, high] (side 1), or of the concave one above
  // them (side −1).
  Knots hull(size_t low, size_t high, int side) const {
    Knots knots;
    for (size_t j = low; j <= high; ++j) {
      while (knots.size() >= 2 && side * turn(knots[knots.size() - 2], knots.back(), j) <= 0) {
        knots.pop_back();
      }
      knots.push_back(j);
    }
    return knots;
  }

  // The height of the line through `knots` at point j.
  double height(const Knots& knots, size_t j) const {
    const auto right = std::lower_bound(knots.begin(), knots.end(), j);
    if (*right == j) return static_cast<double>(j);
    const size_t from = *(right - 1), to = *right;
    if (x_[to] == x_[from]) return static_cast<double>(j);
    return from + (x_[j] - x_[from]) * static_cast<double>(to - from) / (x_[to] - x_[from]);
  }

 private:
  // Above 0 where the way a → b → c turns to the left.
  double turn(size_t a, size_t b, size_t c) const {
    return (x_[b] - x_[a]) * static_cast<double>(c - a) -
           (x_[c] - x_[a]) * static_cast<double>(b - a);
  }

  std::vector<double> x_;
};

// ---- Thresholds ----

// A distance that matters: as wide as sampling.target_width asks intervals to be.
constexpr double kMatters = 0.02;

constexpr size_t kModeRounds = 10;
// √n times the dip that 99 in 100 lists of n uniform samples stay below, n from 10 to 200: read off
// 20,000 simulated lists for each of a dozen n. Of all distributions with one mode the uniform one
// dips deepest.
double dip_bound(size_t n) { return 0.65 - 0.46 / std::sqrt(static_cast<double>(n)); }

constexpr double kNormal99 = 2.576;  // two-sided

// Part of the wall time that a case may lose to others: beyond it the loss is as large as what the
// intervals resolve. The gate repeats a visit that lost more.
constexpr double kLostShare = 0.02;
// Stolen time is told in ticks of 10 ms, the first of which may be of before the round.
constexpr double kTicks_ms = 20;
// Cores' worth of time that others may take: they share memory and caches even where they leave us
// the cores.
constexpr double kOtherCores = 0.1;
// Turbo moves by 2 to 3 %, and so does core_ghz() on a shared machine.
constexpr double kFrequencyMoves = 0.05;
// What one costs: a private cache of 2 MiB filled again at 20 GB/s; a page zeroed and mapped. (A
// huge page takes some 200 µs, but is not counted apart.)
constexpr double kMigration_ms = 0.1, kMinorFault_ms = 1e-3;
constexpr double kOwnCostShare = 0.01;  // of the wall time, for what a case does to itself

double median_of(std::span<const double> samples) { return *summarize(samples).p50; }

}  // namespace

// With the modal interval [low, high] narrowed as long as the two lines stand farther apart than
// the dip so far; outside of it the distribution must be convex, then concave.
double dip(std::span<const double> samples) {
  const Distribution all(samples);
  double twice = 1;  // 2 · dip in counts
  size_t low = 0, high = all.size() - 1;
  while (low < high) {
    const Knots below = all.hull(low, high, 1), above = all.hull(low, high, -1);
    const auto gap = [&](size_t j) { return all.height(above, j) - all.height(below, j) + 1; };
    size_t widest = low;
    for (const Knots* knots : {&below, &above}) {
      for (size_t j : *knots) {
        if (gap(j) > gap(widest)) widest = j;
      }
    }
    if (gap(widest) <= twice) break;
    const size_t new_low = *(std::upper_bound(below.begin(), below.end(), widest) - 1);
    const size_t new_high = *std::lower_bound(above.begin(), above.end(), widest);
    for (size_t j = low; j <= new_low; ++j) {
      twice = std::max(twice, static_cast<double>(j) - all.height(below, j) + 1);
    }
    for (size_t j = new_high; j <= high; ++j) {
      twice = std::max(twice, all.height(above, j) - static_cast<double>(j) + 1);
    }
    if (new_low == low && new_high == high) break;
    low = new_low;
    high = new_high;
  }
  return twice / (2 * static_cast<double>(all.size()));
}

bool has_two_modes(std::span<const double> rounds) {
  if (rounds.size() < kModeRounds) return false;
  std::vector<double> sorted(rounds.begin(), rounds.end());
  std::sort(sorted.begin(), sorted.end());
  const double spread = quantile(sorted, 0.9) - quantile(sorted, 0.1);
  if (spread <= kMatters * std::abs(median_of(rounds))) return false;
  return dip(rounds) * std::sqrt(static_cast<double>(rounds.size())) > dip_bound(rounds.size());
}

// The number of pairs in order less that of pairs out of order; its variance without a drift is
// n(n − 1)(2n + 5)/18 (Mann 1945, Kendall 1948), and 1 corrects for its steps.
bool drifts(std::span<const double> rounds) {
  const size_t n = rounds.size();
  int64_t score = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) score += (rounds[j] > rounds[i]) - (rounds[j] < rounds[i]);
  }
  const double count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  if (n < 2 || static_cast<double>(std::abs(score)) - 1 <= kNormal99 * deviation) return false;
  const double first = median_of(rounds.first(n / 2)), second = median_of(rounds.last(n / 2));
  return std::abs(second - first) > kMatters * std::abs(median_of(rounds));
}

std::vector<std::string> disturbances(const Probes& p, std::span<const double> rounds) {
  std::vector<std::string> found;
  const auto doubt = [&](bool is_so, const char* words) {
    if (is_so) found.emplace_back(words);
  };
  const double wall_ms = p.wall_ms.value_or(0);
  const auto lost = [&](std::optional<double> ms) { return ms.value_or(0) > kLostShare * wall_ms; };
  const double others_ms = p.machine_busy_ms && p.cpu_ms ? *p.machine_busy_ms - *p.cpu_ms : 0;
  const double own_cost_ms = kOwnCostShare * wall_ms;
  if (wall_ms > 0) {
    doubt(lost(p.run_delay_ms), "threads had to wait for a core");
    doubt(lost(p.steal_ms) && *p.steal_ms > kTicks_ms, "the host gave cores to others (steal)");
    doubt(lost(p.throttled_ms), "the control group's CPU quota stopped it");
    doubt(others_ms > kOtherCores * wall_ms && others_ms > kTicks_ms,
          "other processes computed beside it");
    doubt(p.migrations.value_or(0) * kMigration_ms > own_cost_ms,
          "threads were moved between cores often");
    doubt(p.minor_faults.value_or(0) * kMinorFault_ms > own_cost_ms,
          "many page faults: its memory had not settled");
  }
  doubt(p.major_faults.value_or(0) > 0, "page faults read from disk");
  doubt(p.thermal_throttles.value_or(0) > 0, "the processor was throttled for its heat");
  doubt(p.lowest_core_ghz && p.highest_core_ghz &&
            *p.lowest_core_ghz < (1 - kFrequencyMoves) * *p.highest_core_ghz,
        "the core's frequency moved");
  doubt(has_two_modes(rounds), "its rounds lie in two heaps");
  doubt(drifts(rounds), "its rounds drift");
  return found;
}

}  // namespace kvmark
