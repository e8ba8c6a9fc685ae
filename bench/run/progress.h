// Done, total and time left, on a terminal's last line.
#pragma once

#include <cstdint>
#include <string>

namespace kvmark {

// Silent for the first two seconds, and always where `out` is not a terminal.
class Progress {
 public:
  // `predicted_s`: of all `total` cases, or whatever else is counted, together.
  Progress(int fd, int total, double predicted_s, std::string counted = "cases");
  ~Progress() { clear(); }

  // What is being done now, with a worker or without.
  void now(std::string what);
  // A case ended that was predicted to take `predicted_s`.
  void done(double predicted_s);
  // Draws the line again, with the clock as it is.
  void tick();
  // Removes the line, before something else is printed.
  void clear();

 private:
  double elapsed_s() const;
  std::string line() const;

  int fd_;
  bool terminal_;
  int total_;
  std::string counted_;
  int done_ = 0;
  double predicted_s_;
  double predicted_done_s_ = 0;
  int64_t started_ns_;
  std::string now_;
  bool drawn_ = false;
};

// 42 s, 3 min 20 s, 2 h 5 min.
std::string human_seconds(double seconds);

}  // namespace kvmark
