#include "engines/core/thread_pool.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "engines/core/affinity.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

// Longer than the gaps between the loops of a decode step, shorter than anyone would notice.
constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kSpinsBetweenClocks = 64;
// After so many pauses the caller lets others have its core: a worker that holds the last index may
// be waiting for one.
constexpr int kSpinsBeforeYield = 4096;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : spin_(threads <= static_cast<int>(std::thread::hardware_concurrency())) {
  check(threads >= 1, "a thread pool of {} threads: expected at least 1", threads);
  workers_.reserve(threads - 1);
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

// The first constructor's pool is whole, so its threads end well when pinning throws.
ThreadPool::ThreadPool(int threads, Pinning pinning) : ThreadPool(threads) {
  if (pinning == Pinning::cpu_each) pin_threads();
}

void ThreadPool::pin_threads() {
  const std::vector<int> cpus = allowed_cpus();
  const auto pin = [&](std::thread::native_handle_type thread, size_t index) {
    if (cpus.empty() || !set_allowed_cpus(thread, {&cpus[index % cpus.size()], 1})) {
      throw UsageError(
          "threads cannot be kept on CPUs of their own here (Linux can do that): leave "
          "`pin` out");
    }
  };
  for (size_t i = 0; i < workers_.size(); ++i) pin(workers_[i].native_handle(), i + 1);
  pin(pthread_self(), 0);
  callers_cpus_ = cpus;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  if (!callers_cpus_.empty()) set_allowed_cpus(pthread_self(), callers_cpus_);
}

void ThreadPool::park() { park_.store(true, std::memory_order_relaxed); }

void ThreadPool::run_erased(int n, Call call, void* body) {
  check(!running_.exchange(true, std::memory_order_acquire),
        "ThreadPool::run() was called from a body or by two threads at once");
  if (n > 0) {
    n_ = n;
    call_ = call;
    body_ = body;
    failed_.store(false, std::memory_order_relaxed);
    unfinished_.store(n, std::memory_order_relaxed);
    left_.store(n, std::memory_order_release);
    if (n > 1 && !workers_.empty()) {
      park_.store(false, std::memory_order_relaxed);
      epoch_.fetch_add(1);
      // A worker counts itself among the sleepers before it looks at the epoch for the last time;
      // both are sequentially consistent, so either it sees the new epoch or it is seen here.
      if (sleepers_.load() > 0) {
        { std::lock_guard lock(mutex_); }
        wake_.notify_all();
      }
    }
    drain(0);
    for (int spins = 0; unfinished_.load(std::memory_order_acquire) > 0; ++spins) {
      if (spins < kSpinsBeforeYield) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  running_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

void ThreadPool::drain(int thread) {
  int left = left_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      execute(n_ - left, thread);
      left = left_.load(std::memory_order_relaxed);
    }
  }
}

void ThreadPool::execute(int index, int thread) {
  if (!failed_.load(std::memory_order_relaxed)) {
    try {
      call_(body_, index, thread);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
  unfinished_.fetch_sub(1, std::memory_order_release);
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  while (!stop_.load()) {
    wait_for_loop(seen);
    seen = epoch_.load();
    drain(thread);
  }
}

void ThreadPool::wait_for_loop(uint64_t seen) {
  const auto woken = [this, seen] { return epoch_.load() != seen || stop_.load(); };
  if (spin_) {
    const auto until = std::chrono::steady_clock::now() + kSpinTime;
    do {
      for (int i = 0; i < kSpinsBetweenClocks; ++i) {
        if (woken()) return;
        pause();
      }
    } while (!park_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until);
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, woken);
  sleepers_.fetch_sub(1);
}

}  // namespace kvmark
