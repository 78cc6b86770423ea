// SPDX-License-Identifier: Apache-2.0
//===- AsyncRunner.h - A thread that runs a context on request ------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_ASYNCRUNNER_H
#define TESSERA_BMRUNTIME_SRC_CORE_ASYNCRUNNER_H

#include "Status.h"

#include <pthread.h>

namespace bmrt::core {

/// A thread that runs one function at a time. The first launch starts it.
class AsyncRunner {
public:
  using Function = bmrt_code_t (*)(void *argument, bmrt_status_t *status);

  AsyncRunner() = default;
  AsyncRunner(const AsyncRunner &) = delete;
  AsyncRunner &operator=(const AsyncRunner &) = delete;
  ~AsyncRunner() { stop(); }

  /// Calls |function| on the thread; fails while another call is pending.
  bmrt_code_t launch(Function function, void *argument, bmrt_status_t *status);
  /// Waits for the call and returns its result.
  bmrt_code_t wait(bmrt_status_t *status);
  /// Returns true if a launch has not been waited for.
  bool isPending() const { return pending; }
  /// Returns true if |wait| would return at once.
  bool isDone();
  /// Waits for a call in flight and ends the thread.
  void stop();

private:
  static void *threadMain(void *self);
  void serve();

  pthread_t thread = {};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  bool started = false;
  bool pending = false; // accessed only by the caller's thread; the mutex guards the other members
  bool busy = false, stopping = false;
  Function function = nullptr;
  void *argument = nullptr;
  bmrt_status_t result = {};
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_ASYNCRUNNER_H
