// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.cpp - Runs the tiles of a launch on several threads -----===//
#include "ThreadPool.h"

#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace bmrt::core;

namespace {

/// Spin time of idle workers. Longer than a sequence of single-tile launches between two shared launches, and than the
/// usual time between two runs; shorter than a scheduler time slice. Waking a sleeping thread costs the caller up to 40
/// us on virtual machines.
constexpr uint64_t kSpinNs = 250000;
constexpr int kPausesPerClockRead = 16;
/// Shorter launches are not examined: a preempted thread is away for a time slice of milliseconds.
constexpr uint64_t kLongLaunchNs = 1000000;
/// A rest is twice as long as the previous one if it is needed again soon. Finding that out costs a time slice, i.e. a
/// few percent of the longest rest.
constexpr uint64_t kShortestRestNs = 20000000, kLongestRestNs = 320000000;

uint64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWaitFor(std::atomic<uint32_t> &word, uint32_t expected, uint64_t ns) {
  const timespec limit = {time_t(ns / 1000000000u), long(ns % 1000000000u)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

} // namespace

uint32_t ThreadPool::availableCpus() {
  cpu_set_t set;
  // Fails if there are more processors than a cpu_set_t holds.
  const long count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return count > 1 ? uint32_t(count) : 1;
}

bmrt_code_t ThreadPool::reserveScratch(uint64_t bytes, bmrt_status_t *status) {
  if (bytes <= scratchBytes) {
    return BMRT_OK;
  }
  for (Buffer &buffer : scratch) {
    if (!buffer.allocate(bytes)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for %llu bytes of scratch on each of %u threads",
                       static_cast<unsigned long long>(bytes), threads());
    }
  }
  scratchBytes = bytes;
  return BMRT_OK;
}

bmrt_code_t ThreadPool::start(uint32_t threads, bmrt_status_t *status) {
  if (!scratch.allocate(threads)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %u threads", threads);
  }
  // With more threads than processors, a spinning thread would keep another thread from working.
  spinNs = threads <= availableCpus() ? kSpinNs : 0;
  Array<Worker> fresh;
  if (!fresh.allocate(threads - 1)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %u threads", threads);
  }
  for (uint32_t i = 0; i < fresh.size(); ++i) {
    Worker &worker = fresh[i];
    worker.pool = this;
    worker.index = i + 1;
    const int error = pthread_create(&worker.thread, nullptr, workerMain, &worker);
    if (error != 0) {
      stopping = true;
      wakeSleepers();
      for (uint32_t started = 0; started < i; ++started) {
        pthread_join(fresh[started].thread, nullptr);
      }
      return BMRT_FAIL(status, NO_MEMORY, "failed to start thread %u of %u: %s", i + 2, threads, strerror(error));
    }
  }
  workers = std::move(fresh);
  return BMRT_OK;
}

ThreadPool::~ThreadPool() {
  stopping = true;
  wakeSleepers();
  for (Worker &worker : workers) {
    pthread_join(worker.thread, nullptr);
  }
}

void ThreadPool::wakeSleepers() {
  wakeCount.fetch_add(1);
  futexWakeAll(wakeCount);
}

void ThreadPool::runShared(const Launch &launch) {
  current = launch;
  nextTile.store(0, std::memory_order_relaxed);
  const uint64_t number = (state.load(std::memory_order_relaxed) >> 32) + 1;
  // Sequentially consistent with the sleepers' increment: either this thread sees the sleeper, or the sleeper sees the
  // new state (waitForChange).
  state.store(number << 32 | kOpen);
  if (sleepers.load() > 0) {
    wakeSleepers();
  }
  if (runTiles(scratch[0].data(), /*isCaller=*/true, callers)) {
    sendToRest(workers[workers.size() - 1]);
  }
  uint64_t now = state.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  for (uint32_t spins = 0; now & kJoined; ++spins) {
    cpu::pause();
    // With more threads than cores, the awaited thread may need the core of this one.
    if (spinNs == 0 || spins % 4096 == 4095) {
      sched_yield();
    }
    now = state.load(std::memory_order_acquire);
  }
}

bool ThreadPool::runTiles(void *threadScratch, bool isCaller, Account &account) {
  const Launch launch = current;
  const uint64_t start = nowNs();
  for (;;) {
    const int64_t begin = nextTile.fetch_add(launch.grain, std::memory_order_relaxed);
    if (begin >= launch.tiles) {
      break;
    }
    const int64_t left = launch.tiles - begin;
    launch.kernel(launch.args, begin, begin + (left < launch.grain ? left : launch.grain), threadScratch);
    if (launch.isInterrupted(isCaller)) {
      break;
    }
  }
  return wasPutAside(account, start);
}

uint64_t ThreadPool::waitedForProcessor() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  char text[96]; // time on a processor, time waiting for one, number of time slices
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  text[size > 0 ? size : 0] = 0;
  const char *second = strchr(text, ' ');
  uint64_t waited = 0;
  for (const char *at = second ? second + 1 : ""; *at >= '0' && *at <= '9'; ++at) {
    waited = waited * 10 + uint64_t(*at - '0');
  }
  return waited;
}

bool ThreadPool::wasPutAside(Account &account, uint64_t begin) {
  const uint64_t took = nowNs() - begin;
  if (took < kLongLaunchNs) {
    return false;
  }
  const uint64_t now = waited();
  const pid_t thread = pid_t(syscall(SYS_gettid));
  const bool isKnown = account.thread == thread;
  const uint64_t lost = now - account.waited;
  account = {thread, now};
  return isKnown && lost > took / 4;
}

void ThreadPool::sendToRest(Worker &worker) {
  // Two threads may do this at the same time; then one of the two rests counts.
  const uint64_t now = nowNs(), last = worker.restUntil.load(std::memory_order_relaxed);
  uint64_t length = worker.restNs.load(std::memory_order_relaxed);
  const bool isSoon = now < last + length;
  length = !isSoon ? kShortestRestNs : length < kLongestRestNs ? 2 * length : length;
  worker.restNs.store(length, std::memory_order_relaxed);
  worker.restUntil.store(now + length, std::memory_order_relaxed);
}

void ThreadPool::rest(Worker &worker) {
  while (!stopping.load()) {
    const uint32_t ticket = wakeCount.load();
    const uint64_t now = nowNs(), until = worker.restUntil.load(std::memory_order_relaxed);
    if (now >= until) {
      return;
    }
    if (!stopping.load()) { // |stopping| is set before wakeCount changes
      futexWaitFor(wakeCount, ticket, until - now);
    }
  }
}

void *ThreadPool::workerMain(void *argument) {
  Worker *worker = static_cast<Worker *>(argument);
  const FloatModeScope floatMode;
  worker->pool->work(*worker);
  return nullptr;
}

void ThreadPool::work(Worker &worker) {
  uint64_t done = 0; // number of the last launch that this worker joined or found closed
  while (!stopping.load(std::memory_order_relaxed)) {
    uint64_t seen = state.load(std::memory_order_acquire);
    if (!(seen & kOpen) || seen >> 32 == done) {
      seen = waitForChange(seen);
    }
    if (!(seen & kOpen) || seen >> 32 == done) {
      continue;
    }
    if (const uint64_t until = worker.restUntil.load(std::memory_order_relaxed); until && until > nowNs()) {
      rest(worker);
      continue;
    }
    if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
      done = seen >> 32;
      // Read the address now: scratch may have grown since the last launch.
      if (runTiles(scratch[worker.index].data(), /*isCaller=*/false, worker.account)) {
        sendToRest(worker);
      }
      state.fetch_sub(1, std::memory_order_release);
    }
  }
}

uint64_t ThreadPool::waitForChange(uint64_t seen) {
  const uint64_t deadline = nowNs() + spinNs;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      const uint64_t now = state.load(std::memory_order_acquire);
      if (now >> 32 != seen >> 32 || stopping.load(std::memory_order_relaxed)) {
        return now;
      }
      cpu::pause();
    }
  } while (nowNs() < deadline);

  const uint32_t ticket = wakeCount.load();
  sleepers.fetch_add(1);
  uint64_t now = state.load();
  if (now >> 32 == seen >> 32 && !stopping) {
    futexWait(wakeCount, ticket);
    now = state.load();
  }
  sleepers.fetch_sub(1);
  return now;
}
