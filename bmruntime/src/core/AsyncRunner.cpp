// SPDX-License-Identifier: Apache-2.0
//===- AsyncRunner.cpp - A thread that runs a context on request ----------===//
#include "AsyncRunner.h"

#include <cstring>

using namespace bmrt::core;

namespace {
class Lock {
public:
  explicit Lock(pthread_mutex_t &mutex) : mutex(mutex) { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }

private:
  pthread_mutex_t &mutex;
};
} // namespace

bmrt_code_t AsyncRunner::launch(Function newFunction, void *newArgument, bmrt_status_t *status) {
  if (pending) {
    return BMRT_FAIL(status, FAILED_PRECONDITION,
                     "a launched run has not been waited for: call bmrt_context_wait first");
  }
  if (!started) {
    const int error = pthread_create(&thread, nullptr, threadMain, this);
    if (error != 0) {
      return BMRT_FAIL(status, NO_MEMORY, "failed to start a thread: %s", strerror(error));
    }
    started = true;
  }
  Lock lock(mutex);
  function = newFunction;
  argument = newArgument;
  pending = busy = true;
  pthread_cond_broadcast(&changed);
  return BMRT_OK;
}

bmrt_code_t AsyncRunner::wait(bmrt_status_t *status) {
  if (!pending) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "no launched run to wait for");
  }
  Lock lock(mutex);
  while (busy) {
    pthread_cond_wait(&changed, &mutex);
  }
  pending = false;
  if (status) {
    *status = result;
  }
  return result.code;
}

bool AsyncRunner::isDone() {
  Lock lock(mutex);
  return !busy;
}

void AsyncRunner::stop() {
  if (!started) {
    return;
  }
  {
    Lock lock(mutex);
    stopping = true;
    pthread_cond_broadcast(&changed);
  }
  pthread_join(thread, nullptr);
  started = pending = false;
}

void *AsyncRunner::threadMain(void *self) {
  static_cast<AsyncRunner *>(self)->serve();
  return nullptr;
}

void AsyncRunner::serve() {
  Lock lock(mutex);
  for (;;) {
    while (!busy && !stopping) {
      pthread_cond_wait(&changed, &mutex);
    }
    if (!busy) {
      return;
    }
    pthread_mutex_unlock(&mutex);
    bmrt_status_t status = {};
    status.file = "";
    function(argument, &status);
    pthread_mutex_lock(&mutex);
    result = status;
    busy = false;
    pthread_cond_broadcast(&changed);
  }
}
