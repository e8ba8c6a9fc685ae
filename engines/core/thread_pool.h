// A persistent pool for data-parallel loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace kvmark {

// Runs loops over [0, n) on `threads` threads, the caller's included. Between loops the workers
// spin for a short while and then sleep; park() puts them to sleep at once, so that a resident
// process leaves the cores to another. run() neither allocates nor locks while the workers are
// awake, and it does not wait for workers that found nothing to do. One caller at a time, and a
// body may not call run(): both throw LogicError.
class ThreadPool {
 public:
  // `cpu_each`: thread i stays on the i-th CPU that the caller may run on; more threads than CPUs
  // take them in turn. The caller is thread 0 and gets its CPUs back when the pool ends, which must
  // be on the thread that made it.
  enum class Pinning { none, cpu_each };

  explicit ThreadPool(int threads);  // ≥ 1; throws LogicError otherwise
  // The same; throws UsageError where the system cannot pin.
  ThreadPool(int threads, Pinning pinning);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(index, thread) for each index in [0, n), indices handed out one by one; thread is in
  // [0, threads()). Returns when all are done. The first exception of a body is rethrown; indices
  // not yet begun are then left out.
  template <typename Body>
  void run(int n, Body&& body) {
    using B = std::remove_reference_t<Body>;
    run_erased(
        n, [](void* b, int index, int thread) { (*static_cast<B*>(b))(index, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Puts idle workers to sleep at once; the next run() wakes them.
  void park();

 private:
  using Call = void (*)(void* body, int index, int thread);
  void pin_threads();
  void run_erased(int n, Call call, void* body);
  void work(int thread);
  // Takes indices until none is left.
  void drain(int thread);
  // Runs one index and keeps the first exception.
  void execute(int index, int thread);
  // Returns when a loop newer than `seen` was started or the pool stops.
  void wait_for_loop(uint64_t seen);

  // The loop in progress, written by the caller before it stores `left_`. A thread that took an
  // index may read them: the caller cannot go on before that index is done.
  int n_ = 0;
  Call call_ = nullptr;
  void* body_ = nullptr;
  std::exception_ptr error_;

  alignas(64) std::atomic<int> left_{0};        // indices not yet taken
  alignas(64) std::atomic<int> unfinished_{0};  // indices not yet done
  alignas(64) std::atomic<uint64_t> epoch_{0};  // of the last loop started
  std::atomic<int> sleepers_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> park_{false};
  std::atomic<bool> stop_{false};
  const bool spin_;  // not where threads would take the cores from each other

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
  std::vector<int> callers_cpus_;  // before it was pinned; empty: it was not
};

}  // namespace kvmark
