//===- Scheduler.h - Executes work in dependency order --------------------===//
// SPDX-License-Identifier: Apache-2.0
// Work is not executed until a thread synchronises with it. It is then executed in an order drawn from the seed that
// obeys only the dependencies, so that a missing wait in an application shows.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_SCHEDULER_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_SCHEDULER_H

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
  std::function<void()> run;   ///< must not throw
  const void *owner = nullptr; ///< the context
  bool isDone = false;
  // State of the scheduler.
  unsigned missing = 0;
  uint64_t number = 0;
  std::vector<WorkRef> followers;
};

/// Executes work in an order that obeys its dependencies. Thread-safe.
class Scheduler {
public:
  ~Scheduler();
  void setSeed(uint64_t seed);
  /// |dependencies| may hold null and work that is done.
  WorkRef submit(const void *owner, const std::vector<WorkRef> &dependencies, std::function<void()> run);
  /// Returns when |work| is done, after executing the work that it depends on, and possibly other work.
  void wait(const WorkRef &work);
  void waitForAll(const void *owner);
  /// Executes one item of work if any is ready, as a GPU makes progress while it is polled.
  void advance();
  bool isDone(const WorkRef &work);
  bool hasWork(const void *owner);
  /// From now on, a thread executes work even if no call waits for it.
  void startBackground();

private:
  WorkRef take();
  void execute(std::unique_lock<std::mutex> &lock, const WorkRef &work);
  void background();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<WorkRef> ready;
  std::vector<const void *> unfinished; ///< owners, one entry per item of unfinished work
  uint64_t state = 1, numbers = 0, finished = 0;
  bool isOrdered = false, isEnding = false;
  std::thread thread;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_SCHEDULER_H
