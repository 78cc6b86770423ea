// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool_test.cpp - Each tile runs once, for any thread count ----===//
#include "ThreadPool.h"

#include "ExecutionPlan.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>
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

/// A kernel whose tiles take two milliseconds; records the thread that ran each tile.
void noteThread(void *const *args, int64_t begin, int64_t end, void *) {
  std::atomic<pthread_t> *threads = static_cast<std::atomic<pthread_t> *>(args[0]);
  for (int64_t i = begin; i < end; ++i) {
    threads[i] = pthread_self();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Returns the number of 8 tiles that other threads than this one have run.
int tilesOfOthers(ThreadPool &pool) {
  std::vector<std::atomic<pthread_t>> threads(8);
  void *args[] = {threads.data()};
  pool.run({noteThread, args, 8, 1});
  int others = 0;
  for (std::atomic<pthread_t> &thread : threads) {
    others += !pthread_equal(thread, pthread_self());
  }
  return others;
}

/// A fake accounting in which the caller or the workers wait a second between any two readings, as the flags select.
thread_local uint64_t secondsWaited = 0;
thread_local bool isTheCaller = false;
std::atomic<bool> callerWaits = false, workersWait = false;
uint64_t waitedAsTold() {
  secondsWaited += isTheCaller ? callerWaits : workersWait;
  return secondsWaited * 1000000000u;
}

TEST(Rest, IsTakenWhileAThreadHasNoProcessor) {
  isTheCaller = true;
  for (bool caller : {true, false}) {
    callerWaits = workersWait = false;
    ThreadPool pool;
    pool.setWaited(waitedAsTold);
    ASSERT_EQ(pool.start(2, nullptr), BMRT_OK);
    EXPECT_GT(tilesOfOthers(pool), 0);
    EXPECT_GT(tilesOfOthers(pool), 0);
    (caller ? callerWaits : workersWait) = true;
    // The first launch detects the wait; on a busy machine a rest may end before the next launch.
    bool rested = false;
    for (int i = 0; i < 20 && !rested; ++i) {
      rested = tilesOfOthers(pool) == 0;
    }
    EXPECT_TRUE(rested);
    callerWaits = workersWait = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(400)); // longer than the longest rest
    EXPECT_GT(tilesOfOthers(pool), 0);
    EXPECT_GT(tilesOfOthers(pool), 0);
  }
  isTheCaller = false;
}

TEST(Rest, EndsWithThePool) {
  callerWaits = workersWait = true;
  ThreadPool pool;
  pool.setWaited(waitedAsTold);
  ASSERT_EQ(pool.start(4, nullptr), BMRT_OK);
  for (int i = 0; i < 4; ++i) {
    tilesOfOthers(pool);
  }
}

TEST(Rest, SystemTellsOfTimeWithoutAProcessor) {
  // With more busy threads than processors, each thread waits for a part of the time.
  std::vector<std::thread> threads;
  std::atomic<uint64_t> total = 0;
  for (uint32_t i = 0; i < 3 * ThreadPool::availableCpus(); ++i) {
    threads.emplace_back([&] {
      const uint64_t before = ThreadPool::waitedForProcessor();
      for (auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
           std::chrono::steady_clock::now() < end;) {
      }
      total += ThreadPool::waitedForProcessor() - before;
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  if (access("/proc/thread-self/schedstat", R_OK) != 0) {
    GTEST_SKIP() << "this system does not account for waiting times";
  }
  EXPECT_GT(total, 10000000u);
}

TEST(Grain, LeavesEnoughPiecesToBalance) {
  EXPECT_EQ(chooseGrain(0, 1, 2), 1);
  EXPECT_EQ(chooseGrain(0, 1600, 2), 100);
  EXPECT_EQ(chooseGrain(7, 1600, 2), 7);
  EXPECT_EQ(chooseGrain(0, 0, 8), 1);
}

} // namespace
