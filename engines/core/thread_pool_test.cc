#include "engines/core/thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "engines/core/affinity.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(ThreadPool, RunsEachIndexOnceOnValidThreads) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(n);
      std::atomic<bool> valid{true};
      pool.run(n, [&](int index, int thread) {
        if (thread < 0 || thread >= threads) valid = false;
        ++hits[index];
      });
      EXPECT_TRUE(valid);
      for (int i = 0; i < n; ++i) ASSERT_EQ(hits[i], 1) << threads << " threads, index " << i;
    }
  }
}

TEST(ThreadPool, ManySmallLoopsSeeEachOthersPlainWrites) {
  for (int threads : {2, 6}) {  // 6: more than the cores of a small machine
    ThreadPool pool(threads);
    std::vector<int> values(5, 0);
    for (int loop = 0; loop < 3000; ++loop) {
      pool.run(5, [&](int index, int) { values[index] += index; });
      // What one loop wrote, on whatever thread, is there for the caller without atomics.
      ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0), 10 * (loop + 1));
    }
  }
}

TEST(ThreadPool, AThreadRunsOneIndexAtATime) {
  ThreadPool pool(4);
  std::vector<int> per_thread(4, 0);
  for (int loop = 0; loop < 200; ++loop) {
    pool.run(64, [&](int, int thread) { ++per_thread[thread]; });
  }
  EXPECT_EQ(std::accumulate(per_thread.begin(), per_thread.end(), 0), 200 * 64);
}

TEST(ThreadPool, WorkersTakeTheirShare) {
  ThreadPool pool(2);
  std::set<int> threads_seen;
  std::mutex mutex;
  pool.run(2, [&](int, int thread) {
    {
      std::lock_guard lock(mutex);
      threads_seen.insert(thread);
    }
    // Keeps this thread busy until the other has come, so that one cannot do it all.
    for (int i = 0; i < 5000; ++i) {
      {
        std::lock_guard lock(mutex);
        if (threads_seen.size() == 2) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(threads_seen.size(), 2u);
}

TEST(ThreadPool, RethrowsTheFirstExceptionAndGoesOn) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int loop = 0; loop < 50; ++loop) {
      try {
        pool.run(100, [](int index, int) {
          if (index % 10 == 3) throw std::runtime_error("index " + std::to_string(index));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 6), "index ");
      }
      std::atomic<int> count{0};
      pool.run(100, [&](int, int) { ++count; });
      ASSERT_EQ(count, 100);
    }
  }
}

TEST(ThreadPool, NestedRunIsRefused) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    EXPECT_THROW(pool.run(4, [&](int, int) { pool.run(1, [](int, int) {}); }), LogicError);
    std::atomic<int> count{0};
    pool.run(4, [&](int, int) { ++count; });
    EXPECT_EQ(count, 4);
  }
}

TEST(ThreadPool, NeedsAThread) { EXPECT_THROW(ThreadPool(0), LogicError); }

// The CPUs that each thread of a pool may run on.
std::vector<std::vector<int>> cpus_by_thread(ThreadPool& pool) {
  std::vector<std::vector<int>> cpus(pool.threads());
  std::atomic<int> arrived{0};
  pool.run(pool.threads(), [&](int, int thread) {
    cpus[thread] = allowed_cpus();
    // An index each: nobody takes a second one before all have come.
    ++arrived;
    while (arrived < pool.threads()) std::this_thread::yield();
  });
  return cpus;
}

TEST(ThreadPool, PinnedThreadsHaveACpuEachWhileThePoolLives) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads, ThreadPool::Pinning::cpu_each);
    const auto cpus = cpus_by_thread(pool);
    for (int i = 0; i < threads; ++i) {
      EXPECT_EQ(cpus[i], std::vector<int>({all[i % all.size()]})) << "thread " << i;
    }
  }
  EXPECT_EQ(allowed_cpus(), all) << "the caller was not let go";
}

TEST(ThreadPool, ThreadsMayRunWhereTheirCallerMay) {
  ThreadPool pool(3, ThreadPool::Pinning::none);
  for (const auto& cpus : cpus_by_thread(pool)) EXPECT_EQ(cpus, allowed_cpus());
}

double process_cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(ThreadPool, ParkedWorkersUseNoProcessorAndWakeAgain) {
  ThreadPool pool(4);
  for (int loop = 0; loop < 5; ++loop) {
    std::atomic<int> count{0};
    pool.run(16, [&](int, int) { ++count; });
    EXPECT_EQ(count, 16);
    pool.park();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time to fall asleep
    const double before = process_cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_LT(process_cpu_seconds() - before, 0.010);
  }
}

TEST(ThreadPool, WakesFromEveryStageOfFallingAsleep) {
  ThreadPool pool(2);
  // Gaps on both sides of the spinning time, parked and not: a lost wake-up would leave all indices
  // to the caller, which the barrier between the two threads would turn into a hang.
  for (int loop = 0; loop < 300; ++loop) {
    std::atomic<int> arrived{0};
    pool.run(2, [&](int, int) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    if (loop % 3 == 0) pool.park();
    std::this_thread::sleep_for(std::chrono::microseconds(loop));
  }
}

}  // namespace
}  // namespace kvmark
