// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool_test.cpp - Every tile once, on any number of threads ----===//
#include "ThreadPool.h"

#include "Plan.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

using namespace bmrt::core;

namespace {

void countTiles(void *const *args, int64_t begin, int64_t end, void *scratch) {
  std::atomic<int> *counts = static_cast<std::atomic<int> *>(args[0]);
  if (scratch) {
    *static_cast<volatile char *>(scratch) = 1;
  }
  for (int64_t i = begin; i < end; ++i) {
    counts[i].fetch_add(1, std::memory_order_relaxed);
  }
}

class Pool : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 4, 16));

TEST_P(Pool, EveryTileOnce) {
  ThreadPool pool;
  ASSERT_EQ(pool.start(GetParam(), nullptr), BMRT_OK);
  ASSERT_EQ(pool.reserveScratch(100, nullptr), BMRT_OK);
  EXPECT_EQ(pool.threads(), GetParam());
  std::vector<std::atomic<int>> counts(1000);
  void *args[] = {counts.data()};
  int rounds = 0;
  for (int64_t tiles : {1, 2, 3, 7, 64, 999, 1000}) {
    for (int64_t grain : {1, 3, 100, 5000}) {
      for (std::atomic<int> &count : counts) {
        count = 0;
      }
      pool.run({countTiles, args, tiles, grain});
      for (int64_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(counts[size_t(i)], i < tiles) << tiles << " tiles, grain " << grain;
      }
      ++rounds;
    }
  }
  EXPECT_EQ(rounds, 28);
}

TEST_P(Pool, ManyLaunchesInARow) {
  ThreadPool pool;
  ASSERT_EQ(pool.start(GetParam(), nullptr), BMRT_OK);
  std::vector<std::atomic<int>> counts(32);
  void *args[] = {counts.data()};
  for (int launch = 0; launch < 3000; ++launch) {
    pool.run({countTiles, args, 32, 1});
  }
  for (std::atomic<int> &count : counts) {
    ASSERT_EQ(count, 3000);
  }
}

TEST(Pool, StartsAndStopsAtOnce) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool;
    ASSERT_EQ(pool.start(4, nullptr), BMRT_OK);
  }
}

TEST(Grain, LeavesEnoughPiecesToBalance) {
  EXPECT_EQ(chooseGrain(0, 1, 2), 1);
  EXPECT_EQ(chooseGrain(0, 1600, 2), 100);
  EXPECT_EQ(chooseGrain(7, 1600, 2), 7);
  EXPECT_EQ(chooseGrain(0, 0, 8), 1);
}

} // namespace
