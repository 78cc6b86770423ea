// SPDX-License-Identifier: Apache-2.0
//===- Later.h - Asynchronous variant of a back end -----------------------===//
//
// Wraps a synchronous back end in queues that execute on a thread, like those of real chips: a caller that does not
// wait reads data too early.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_LATER_H
#define TESSERA_BMRUNTIME_CTS_LATER_H

#include "bmrt/backend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bmrt::cts {

/// Executes its work in order, some time after submission; after the first failure it skips the rest.
class LaterQueue {
public:
  using Work = std::function<bmrt_code_t(bmrt_status_t *)>;

  explicit LaterQueue(bmrt_queue_t *inner) : inner(inner), thread([this] { serve(); }) {}
  ~LaterQueue() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  bmrt_code_t add(Work next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_all();
    return BMRT_OK;
  }

  bool isDone() {
    const std::lock_guard lock(mutex);
    return work.empty();
  }

  bmrt_code_t wait(const bmrt_interrupt_t *interrupt, bmrt_status_t *status) {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, std::chrono::milliseconds(2), [&] { return work.empty(); })) {
      if (interrupt && interrupt->is_requested(interrupt->user)) {
        isCancelled = true;
      }
    }
    isCancelled = false;
    *status = failure;
    failure = {};
    return status->code;
  }

  /// A separate query, because a poll function may be called only by the waiting thread.
  const bmrt_interrupt_t interrupt = {[](void *user) { return static_cast<LaterQueue *>(user)->isCancelled.load(); },
                                      this};
  bmrt_queue_t *inner;

private:
  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stopping || !work.empty(); });
      if (work.empty()) {
        return;
      }
      if (failure.code == BMRT_OK) {
        const Work next = work.front();
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(200)); // exposes callers that do not wait
        bmrt_status_t status = {};
        status.code = next(&status);
        lock.lock();
        failure = status;
      }
      work.pop_front();
      changed.notify_all();
    }
  }

  std::atomic<bool> isCancelled = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> work;
  bmrt_status_t failure = {};
  bool stopping = false;
  std::thread thread;
};

/// Returns an asynchronous variant of |Inner| under the name |family|.
template <const bmrt_backend_t &Inner>
bmrt_backend_t makeLater(const char *family) {
  bmrt_backend_t made = Inner;
  made.family = family;
  made.flags |= BMRT_BACKEND_RETURNS_EARLY;
  made.is_done = [](bmrt_queue_t *queue) { return reinterpret_cast<LaterQueue *>(queue)->isDone(); };
  made.make_queue = [](bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status) {
    bmrt_queue_t *inner = nullptr;
    const bmrt_code_t code = Inner.make_queue(device, &inner, status);
    *out = code == BMRT_OK ? reinterpret_cast<bmrt_queue_t *>(new LaterQueue(inner)) : nullptr;
    return code;
  };
  made.destroy_queue = [](bmrt_queue_t *queue) {
    auto *later = reinterpret_cast<LaterQueue *>(queue);
    bmrt_queue_t *inner = later->inner;
    delete later;
    Inner.destroy_queue(inner);
  };
  made.copy = [](bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                 bmrt_status_t *) {
    auto *later = reinterpret_cast<LaterQueue *>(queue);
    return later->add(
        [=](bmrt_status_t *status) { return Inner.copy(later->inner, direction, to, from, bytes, status); });
  };
  made.run = [](bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *) {
    auto *later = reinterpret_cast<LaterQueue *>(queue);
    bmrt_stream_t call = *stream; // a copy, because the caller's data may change after this call
    std::vector<void *> tensors(stream->tensors, stream->tensors + stream->input_count + stream->output_count);
    call.interrupt = &later->interrupt;
    return later->add([=, tensors = std::move(tensors)](bmrt_status_t *status) {
      bmrt_stream_t own = call;
      own.tensors = tensors.data();
      return Inner.run(later->inner, program, &own, status);
    });
  };
  made.wait = [](bmrt_queue_t *queue, const bmrt_interrupt_t *interrupt, bmrt_status_t *status) {
    return reinterpret_cast<LaterQueue *>(queue)->wait(interrupt, status);
  };
  return made;
}

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_LATER_H
