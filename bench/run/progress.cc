#include "bench/run/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "bench/record/clock.h"

namespace kvmark {
namespace {

constexpr double kQuietSeconds = 2;

void put(int fd, const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
}

}  // namespace

Progress::Progress(int fd, int total, double predicted_s, std::string counted)
    : fd_(fd),
      terminal_(isatty(fd) == 1),
      total_(total),
      counted_(std::move(counted)),
      predicted_s_(predicted_s),
      started_ns_(now_ns()) {}

void Progress::now(std::string what) {
  now_ = std::move(what);
  tick();
}

void Progress::done(double predicted_s) {
  ++done_;
  predicted_done_s_ += predicted_s;
  tick();
}

void Progress::tick() {
  if (!terminal_ || elapsed_s() < kQuietSeconds) return;
  winsize size = {};
  const bool known = ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  put(fd_, "\r\033[K" + line().substr(0, known ? size.ws_col - 1u : 79u));
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) put(fd_, "\r\033[K");
  drawn_ = false;
}

double Progress::elapsed_s() const { return 1e-9 * static_cast<double>(now_ns() - started_ns_); }

// Predictions are off by a factor that is much the same for all cases of a run: what has ended says
// which.
std::string Progress::line() const {
  std::string text = fmt::format("{}/{} {}", done_, total_, counted_);
  const double left = std::max(0.0, predicted_s_ - predicted_done_s_);
  if (done_ > 0 && predicted_done_s_ > 0) {
    text += fmt::format(", about {} left", human_seconds(left * elapsed_s() / predicted_done_s_));
  }
  return now_.empty() ? text : text + ": " + now_;
}

std::string human_seconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.2g} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace kvmark
