#include "engines/core/affinity.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>

#include "engines/core/check.h"

namespace kvmark {
namespace {

TEST(Affinity, AThreadStaysOnWhatItIsGivenAndTheOthersDoNot) {
  const std::vector<int> before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  EXPECT_TRUE(std::is_sorted(before.begin(), before.end()));
  std::thread([&] {
    EXPECT_EQ(allowed_cpus(), before) << "a new thread may run where its maker may";
    EXPECT_TRUE(set_allowed_cpus(pthread_self(), {&before.back(), 1}));
    EXPECT_EQ(allowed_cpus(), std::vector<int>({before.back()}));
  }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Affinity, WhatTheSystemRefusesChangesNothing) {
  const std::vector<int> before = allowed_cpus();
  EXPECT_FALSE(set_allowed_cpus(pthread_self(), {})) << "a thread must run somewhere";
  EXPECT_EQ(allowed_cpus(), before);
  const int none = -1;
  EXPECT_THROW(set_allowed_cpus(pthread_self(), {&none, 1}), LogicError);
}

}  // namespace
}  // namespace kvmark
