//===- Scheduler.h - Work in the order of its dependencies -----------------===//
// SPDX-License-Identifier: Apache-2.0
// Work waits until somebody synchronises with it. It is then executed in an order drawn from the seed, that heeds the
// dependencies and nothing else: an application that forgot a wait gets to see it.
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_SCHEDULER_H
#define TESSERA_REGRESSION_CUDA_MACHINE_SCHEDULER_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ptx {

struct Work;
using WorkRef = std::shared_ptr<Work>;

struct Work {
  std::function<void()> run;   ///< throws nothing
  const void *owner = nullptr; ///< the context
  bool isDone = false;
  // The scheduler's own.
  unsigned missing = 0;
  uint64_t number = 0;
  std::vector<WorkRef> followers;
};

/// Thread-safe.
class Scheduler {
public:
  ~Scheduler();
  void setSeed(uint64_t seed);
  /// |dependencies| may hold null and work that is done.
  WorkRef submit(const void *owner, const std::vector<WorkRef> &dependencies, std::function<void()> run);
  /// Returns when |work| is done, having executed what it needed, and perhaps other work.
  void wait(const WorkRef &work);
  void waitForAll(const void *owner);
  /// Executes one piece of work, if any is ready: what a poll of the device gives it time for.
  void advance();
  bool isDone(const WorkRef &work);
  bool hasWork(const void *owner);
  /// From now on work is executed even if nobody asks for it.
  void startBackground();

private:
  WorkRef take();
  void execute(std::unique_lock<std::mutex> &lock, const WorkRef &work);
  void background();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<WorkRef> ready;
  std::vector<const void *> unfinished; ///< owners, one entry for each piece of work
  uint64_t state = 1, numbers = 0, finished = 0;
  bool isOrdered = false, isEnding = false;
  std::thread thread;
};

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_SCHEDULER_H
