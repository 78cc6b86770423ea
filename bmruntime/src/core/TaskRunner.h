// SPDX-License-Identifier: Apache-2.0
//===- TaskRunner.h - Runs the steps of several chips at the same time ----===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_TASKRUNNER_H
#define TESSERA_BMRUNTIME_SRC_CORE_TASKRUNNER_H

#include "AsyncRunner.h"
#include "Interrupt.h"
#include "Memory.h"
#include "TaskSchedule.h"

#include <pthread.h>

namespace bmrt::core {

/// Executes the tasks of a schedule.
class TaskExecutor {
public:
  /// Runs the step of a task, including the steps that it calls, to completion. |agent| as in ExecutionPlan.h.
  virtual bmrt_code_t runTask(uint32_t step, uint32_t agent, bool isCaller, bmrt_status_t *status) = 0;

protected:
  ~TaskExecutor() = default;
};

/// Executes a schedule. The caller's thread runs the host's tasks, and those tasks of chips for which it would
/// otherwise only wait. Tasks that can run concurrently are handed over to one thread per chip, which is started on
/// first use.
class TaskRunner {
public:
  TaskRunner() = default;
  TaskRunner(const TaskRunner &) = delete;
  TaskRunner &operator=(const TaskRunner &) = delete;

  /// Runs all tasks once; the first error cancels other tasks. Afterwards nothing is in flight.
  bmrt_code_t run(TaskExecutor &newExecutor, const TaskSchedule &newSchedule, Interrupt &newInterrupt,
                  bmrt_status_t *status);

private:
  struct Worker {
    TaskRunner *owner = nullptr;
    uint32_t agent = 0;
    bool isServing = false; ///< has been started in this run
    AsyncRunner thread;
  };

  bool isReady(uint32_t task) const;
  bool waitFor(uint32_t task);
  void runHere(uint32_t task);
  void issueAhead();
  bool issue(uint32_t agent);
  void serve(uint32_t agent);
  void finish();
  void wait();
  void recordFailure(const bmrt_status_t &cause);

  TaskExecutor *executor = nullptr;
  const TaskSchedule *schedule = nullptr;
  Interrupt *interrupt = nullptr;
  Array<Worker> workers; ///< by agent

  // The mutex guards the following members; only the caller's thread changes |issued|.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  uint32_t issued[TaskSchedule::kMostAgents] = {}; ///< by agent: tasks that were handed over, or started by the
                                                   ///< caller's thread
  uint32_t done[TaskSchedule::kMostAgents] = {};
  bool isFinishing = false, hasFailed = false;
  bmrt_status_t failure = {};
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_TASKRUNNER_H
