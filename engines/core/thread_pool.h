// A persistent pool for data-parallel loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace kvmark {

// Runs loops over [0, n) on `threads` threads, the caller's included. Between loops the workers spin
// for a short while and then sleep; park() puts them to sleep at once, so that a resident process
// leaves the cores to another. run() neither allocates nor locks while the workers are awake. One
// caller at a time; a body may not call run().
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // ≥ 1; throws LogicError otherwise
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(index, thread) for each index in [0, n), indices handed out one by one; thread is in
  // [0, threads()). Returns when all are done. The first exception of a body is rethrown.
  template <typename Body>
  void run(int n, Body&& body) {
    using B = std::remove_reference_t<Body>;
    run_erased(n, [](void* b, int index, int thread) { (*static_cast<B*>(b))(index, thread); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }

  void park();

 private:
  using Call = void (*)(void* body, int index, int thread);
  void run_erased(int n, Call call, void* body);
  void work(int thread);
  void drain(int thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> epoch_{0};  // odd bits unused: a new value starts a loop
  std::atomic<int> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> park_{false};
  int n_ = 0;
  Call call_ = nullptr;
  void* body_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace kvmark
