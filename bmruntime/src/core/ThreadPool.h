// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.h - Runs the tiles of a launch on several threads -------===//
#ifndef BMRT_CORE_THREADPOOL_H
#define BMRT_CORE_THREADPOOL_H

#include "Interrupt.h"
#include "Memory.h"
#include "Status.h"
#include "bmodel/kernel_abi.h"

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <sys/types.h>

namespace bmrt::core {

/// One kernel call split into tiles.
struct Launch {
  bm_kernel_fn kernel = nullptr;
  void *const *args = nullptr;
  int64_t tiles = 0;
  int64_t grain = 1;              ///< tiles claimed at once
  Interrupt *interrupt = nullptr; ///< null: nothing ends it before its time

  bool isInterrupted(bool isCaller) const {
    return interrupt && (isCaller ? interrupt->check() : interrupt->isRequested());
  }
};

/// A caller and its workers. The caller takes part; idle workers spin for some 250 us, so that the
/// launches of one run, and the next run, follow each other without system calls, and then sleep.
///
/// Workers join a launch while it is open. The caller closes it when no tile is left and waits only
/// for those that joined, so a worker that the operating system has put aside between two tiles delays nobody.
///
/// One that is put aside within a tile does delay the launch, for as long as another program has its processor. So a
/// thread whose share of a launch was spent waiting for a processor to a good part (the system's own account says so)
/// makes a worker rest: itself, or where it is the caller, the last one, whose processor the caller can have then.
/// Rests become longer while that goes on, so that more threads are never slower than one for long.
class ThreadPool {
public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool();

  /// The processors this process may use (its affinity mask), at least 1.
  static uint32_t availableCpus();

  /// Starts |threads| - 1 workers. Called once.
  bmrt_code_t start(uint32_t threads, bmrt_status_t *status);

  /// Gives every thread that much scratch at least. Not during a launch.
  bmrt_code_t reserveScratch(uint64_t bytes, bmrt_status_t *status);

  uint32_t threads() const { return uint32_t(workers.size()) + 1; }

  /// Nanoseconds that the calling thread has been ready and without a processor in all its life; 0 where the system
  /// does not tell. Tests tell what they like.
  using WaitedFn = uint64_t (*)();
  static uint64_t waitedForProcessor();
  void setWaited(WaitedFn function) { waited = function; }

  /// Runs all tiles of |launch|, or as many as had been begun when it was interrupted; returns when they are done.
  void run(const Launch &launch) {
    if (workers.size() == 0 || launch.tiles <= launch.grain) {
      runAlone(launch);
    } else {
      runShared(launch);
    }
  }

private:
  /// What a thread remembers of its time without a processor.
  struct Account {
    pid_t thread = 0;    ///< callers change
    uint64_t waited = 0; ///< when last asked
  };
  struct Worker {
    ThreadPool *pool = nullptr;
    uint32_t index = 0;
    pthread_t thread = {};
    Account account;
    std::atomic<uint64_t> restUntil = 0; ///< no launch is joined before this time
    std::atomic<uint64_t> restNs = 0;    ///< of the last rest
  };

  static void *workerMain(void *argument);
  void work(Worker &worker);
  /// Whether the thread has spent a good part of the time since |begin| waiting for a processor.
  bool wasPutAside(Account &account, uint64_t begin);
  static void sendToRest(Worker &worker);
  void rest(Worker &worker);
  void runAlone(const Launch &launch) {
    for (int64_t begin = 0; begin < launch.tiles; begin += launch.grain) {
      const int64_t left = launch.tiles - begin;
      launch.kernel(launch.args, begin, begin + (left < launch.grain ? left : launch.grain), scratch[0].data());
      if (launch.isInterrupted(/*isCaller=*/true)) {
        return;
      }
    }
  }
  void runShared(const Launch &launch);
  /// Returns whether the thread was put aside meanwhile.
  bool runTiles(void *threadScratch, bool isCaller, Account &account);
  /// Waits for a state other than |seen|, spinning first.
  uint64_t waitForChange(uint64_t seen);
  void wakeSleepers();

  Array<Worker> workers;
  Account callers;
  WaitedFn waited = waitedForProcessor;
  Array<Buffer> scratch; ///< by thread; element 0 is the caller's; null data if none is needed
  uint64_t scratchBytes = 0;
  Launch current;
  uint64_t spinNs = 0; ///< how long an idle worker waits before it sleeps

  // state: launch number << 32 | open << 31 | workers that have joined.
  static constexpr uint64_t kOpen = uint64_t(1) << 31;
  static constexpr uint64_t kJoined = kOpen - 1;
  alignas(64) std::atomic<uint64_t> state = 0;
  alignas(64) std::atomic<int64_t> nextTile = 0;
  alignas(64) std::atomic<uint32_t> wakeCount = 0; ///< what sleepers wait on
  std::atomic<uint32_t> sleepers = 0;
  std::atomic<bool> stopping = false;
};

/// Sets the floating-point mode that kernels are promised (kernel_abi.h) for its lifetime.
class FloatModeScope {
public:
  FloatModeScope();
  ~FloatModeScope();

private:
  uint32_t saved;
};

} // namespace bmrt::core

#endif // BMRT_CORE_THREADPOOL_H
