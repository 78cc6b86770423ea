// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.h - Runs the tiles of a launch on several threads -------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_THREADPOOL_H
#define TESSERA_BMRUNTIME_SRC_CORE_THREADPOOL_H

#include "Cpu.h"
#include "Interrupt.h"
#include "Memory.h"
#include "Status.h"
#include "bmodel/kernel_abi.h"

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <sys/types.h>

namespace bmrt::core {

/// One kernel call, split into tiles.
struct Launch {
  bm_kernel_fn kernel = nullptr;
  void *const *args = nullptr;
  int64_t tiles = 0;
  int64_t grain = 1;              ///< tiles claimed at once
  Interrupt *interrupt = nullptr; ///< null: cannot be interrupted

  bool isInterrupted(bool isCaller) const {
    return interrupt && (isCaller ? interrupt->check() : interrupt->isRequested());
  }
};

/// A caller and its worker threads. The caller takes part in the work. Idle workers spin for about 250 us and then
/// sleep, so that the launches of one run, and the next run, follow each other without system calls.
///
/// Workers join a launch while it is open. The caller closes it when no tile is left and waits only for those that
/// joined, so a worker that the operating system has preempted between two tiles does not delay the launch.
///
/// A worker that is preempted within a tile does delay the launch for as long as another program has its processor.
/// Therefore, a thread that spent a considerable part of a launch waiting for a processor (according to the operating
/// system's accounting) sends a worker to rest: itself, or, if it is the caller, the last worker, whose processor the
/// caller can then use. Rests become longer while this continues, so that several threads are never slower than one for
/// long.
class ThreadPool {
public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool();

  /// Returns the number of processors that this process may use (its affinity mask), at least 1.
  static uint32_t availableCpus();

  /// Starts |threads| - 1 workers. Called once.
  bmrt_code_t start(uint32_t threads, bmrt_status_t *status);

  /// Ensures that every thread has at least |bytes| of scratch. Not during a launch.
  bmrt_code_t reserveScratch(uint64_t bytes, bmrt_status_t *status);

  uint32_t threads() const { return uint32_t(workers.size()) + 1; }

  /// Returns the nanoseconds that the calling thread has spent in its life ready but without a processor; 0 if the
  /// system does not report it. Tests replace this function.
  using WaitedFn = uint64_t (*)();
  static uint64_t waitedForProcessor();
  void setWaited(WaitedFn function) { waited = function; }

  /// Runs all tiles of |launch|, or, if it is interrupted, those already begun; returns when they are done.
  void run(const Launch &launch) {
    if (workers.size() == 0 || launch.tiles <= launch.grain) {
      runAlone(launch);
    } else {
      runShared(launch);
    }
  }

private:
  /// A thread's last reading of its time without a processor.
  struct Account {
    pid_t thread = 0;    ///< the calling thread may change between launches
    uint64_t waited = 0; ///< the last reading
  };
  struct Worker {
    ThreadPool *pool = nullptr;
    uint32_t index = 0;
    pthread_t thread = {};
    Account account;
    std::atomic<uint64_t> restUntil = 0; ///< the worker joins no launch before this time
    std::atomic<uint64_t> restNs = 0;    ///< length of the last rest
  };

  static void *workerMain(void *argument);
  void work(Worker &worker);
  /// Returns true if the thread has spent a considerable part of the time since |begin| waiting for a processor.
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
  /// Returns true if the thread was preempted for a considerable part of the time.
  bool runTiles(void *threadScratch, bool isCaller, Account &account);
  /// Waits for a state other than |seen|; spins first.
  uint64_t waitForChange(uint64_t seen);
  void wakeSleepers();

  Array<Worker> workers;
  Account callers;
  WaitedFn waited = waitedForProcessor;
  Array<Buffer> scratch; ///< by thread; element 0 is the caller's; null data if no launch needs scratch
  uint64_t scratchBytes = 0;
  Launch current;
  uint64_t spinNs = 0; ///< how long an idle worker spins before it sleeps

  // state: launch number << 32 | open << 31 | number of workers that have joined.
  static constexpr uint64_t kOpen = uint64_t(1) << 31;
  static constexpr uint64_t kJoined = kOpen - 1;
  alignas(64) std::atomic<uint64_t> state = 0;
  alignas(64) std::atomic<int64_t> nextTile = 0;
  alignas(64) std::atomic<uint32_t> wakeCount = 0; ///< the futex that sleepers wait on
  std::atomic<uint32_t> sleepers = 0;
  std::atomic<bool> stopping = false;
};

/// Sets the floating-point mode that kernels rely on (kernel_abi.h) for the lifetime of the object.
class FloatModeScope {
public:
  FloatModeScope() : saved(cpu::setKernelFloatMode()) {}
  ~FloatModeScope() { cpu::restoreFloatMode(saved); }

private:
  cpu::FloatMode saved;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_THREADPOOL_H
