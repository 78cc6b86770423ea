// SPDX-License-Identifier: Apache-2.0
//===- TaskRunner.cpp - Runs the steps of several chips at the same time --===//
#include "TaskRunner.h"

#include "ThreadPool.h"

#include <cstring>
#include <ctime>

using namespace bmrt::core;

namespace {

/// Interval at which a waiting caller checks for cancellation.
constexpr long kPollNs = 20000000;

class Lock {
public:
  explicit Lock(pthread_mutex_t &mutex) : mutex(mutex) { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }

private:
  pthread_mutex_t &mutex;
};

} // namespace

bmrt_code_t TaskRunner::run(TaskExecutor &newExecutor, const TaskSchedule &newSchedule, Interrupt &newInterrupt,
                            bmrt_status_t *status) {
  executor = &newExecutor, schedule = &newSchedule, interrupt = &newInterrupt;
  memset(issued, 0, sizeof(issued));
  memset(done, 0, sizeof(done));
  isFinishing = hasFailed = false;
  const Array<TaskSchedule::Task> &tasks = schedule->getTasks();
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    const TaskSchedule::Task &task = tasks[i];
    if (task.number < issued[task.agent]) {
      continue; // already handed over by issueAhead
    }
    if (task.agent == 0) {
      issueAhead();
    }
    if (task.switchesAgent && issue(task.agent)) {
      continue;
    }
    if (!waitFor(i)) {
      break;
    }
    runHere(i);
  }
  finish();
  if (hasFailed && status) {
    *status = failure;
  }
  return hasFailed ? failure.code : BMRT_OK;
}

/// Returns true if everything that a task waits for is done.
bool TaskRunner::isReady(uint32_t task) const {
  const TaskSchedule::Task &def = schedule->getTasks()[task];
  for (uint32_t a = 0; a < schedule->agents(); ++a) {
    if (done[a] < (a == def.agent ? def.number : schedule->needs(task, a))) {
      return false;
    }
  }
  return true;
}

/// Waits for a change, at most until the next poll is due. Called on the caller's thread, which holds the mutex.
void TaskRunner::wait() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += kPollNs;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&changed, &mutex, &until);
  pthread_mutex_unlock(&mutex);
  (void)interrupt->check(); // a running task notices the cancellation and fails
  pthread_mutex_lock(&mutex);
}

/// Waits until |task| may run; returns false if another task has failed.
bool TaskRunner::waitFor(uint32_t task) {
  const Lock lock(mutex);
  while (!hasFailed && !isReady(task)) {
    wait();
  }
  return !hasFailed;
}

void TaskRunner::runHere(uint32_t task) {
  const TaskSchedule::Task &def = schedule->getTasks()[task];
  bmrt_status_t cause = {};
  cause.code = executor->runTask(task, schedule->stepAgent(def.agent), /*isCaller=*/true, &cause);
  const Lock lock(mutex);
  issued[def.agent] = done[def.agent] = def.number + 1;
  if (cause.code != BMRT_OK) {
    recordFailure(cause);
  }
  pthread_cond_broadcast(&changed);
}

/// Before a task of the host: hands over all tasks that do not depend on later tasks of the host.
void TaskRunner::issueAhead() {
  for (uint32_t a = 1; a < schedule->agents(); ++a) {
    while (issued[a] < schedule->count(a) && schedule->needs(schedule->taskOf(a, issued[a]), 0) <= done[0] &&
           issue(a)) {
    }
  }
}

/// Hands over the next task of |agent|; returns false if no thread can be started for it.
bool TaskRunner::issue(uint32_t agent) {
  if (workers.size() == 0 && !workers.allocate(TaskSchedule::kMostAgents)) {
    return false;
  }
  Worker &worker = workers[agent];
  if (!worker.isServing) {
    worker.owner = this, worker.agent = agent;
    auto main = [](void *argument, bmrt_status_t *) {
      Worker &self = *static_cast<Worker *>(argument);
      self.owner->serve(self.agent);
      return BMRT_OK;
    };
    if (worker.thread.launch(main, &worker, nullptr) != BMRT_OK) {
      return false;
    }
    worker.isServing = true;
  }
  const Lock lock(mutex);
  ++issued[agent];
  pthread_cond_broadcast(&changed);
  return true;
}

/// The main loop of a chip's thread during a run.
void TaskRunner::serve(uint32_t agent) {
  const FloatModeScope floatMode;
  const Lock lock(mutex);
  for (;;) {
    while (!isFinishing && done[agent] == issued[agent]) {
      pthread_cond_wait(&changed, &mutex);
    }
    if (done[agent] == issued[agent]) {
      return;
    }
    const uint32_t task = schedule->taskOf(agent, done[agent]);
    while (!hasFailed && !isReady(task)) {
      pthread_cond_wait(&changed, &mutex);
    }
    if (!hasFailed) {
      pthread_mutex_unlock(&mutex);
      bmrt_status_t cause = {};
      cause.code = executor->runTask(task, schedule->stepAgent(agent), /*isCaller=*/false, &cause);
      pthread_mutex_lock(&mutex);
      if (cause.code != BMRT_OK) {
        recordFailure(cause);
      }
    }
    ++done[agent];
    pthread_cond_broadcast(&changed);
  }
}

/// Waits for the tasks that were handed over; the threads then sleep until the next run.
void TaskRunner::finish() {
  {
    const Lock lock(mutex);
    isFinishing = true;
    pthread_cond_broadcast(&changed);
    for (uint32_t a = 1; a < schedule->agents(); ++a) {
      while (done[a] < issued[a]) {
        wait();
      }
    }
  }
  for (Worker &worker : workers) {
    if (worker.isServing) {
      (void)worker.thread.wait(nullptr);
      worker.isServing = false;
    }
  }
}

/// Records the first failure as the result of the run and cancels other tasks. The caller holds the mutex.
void TaskRunner::recordFailure(const bmrt_status_t &cause) {
  if (!hasFailed) {
    hasFailed = true;
    failure = cause;
    interrupt->request();
  }
}
