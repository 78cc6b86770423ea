// SPDX-License-Identifier: Apache-2.0
//===- Objects.h - Objects behind the back end's handles ------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_OBJECTS_H
#define TESSERA_BMRUNTIME_SRC_CUDA_OBJECTS_H

#include "../core/Status.h"
#include "Driver.h"
#include "Program.h"
#include "Staging.h"
#include "bmrt/backend.h"

#include <list>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

struct bmrt_device_t {
  const bmrt::cuda::Driver &driver;
  bmrt::cuda::CUdevice device;
  bmrt::cuda::CUcontext context;
  std::string name;
  int computeCapability;
  bmrt::cuda::CUmemoryPool pool; ///< null if the device does not support pools; memory then comes from the driver
                                 ///< directly
  bmrt::cuda::CUstream memoryStream;
};

struct bmrt_program_t {
  bmrt_device_t &device;
  bmrt::cuda::Tables tables;
  bmrt::cuda::CUmodule module = nullptr;
  std::vector<bmrt::cuda::CUfunction> functions;
  std::vector<uint32_t> sharedBytes; ///< by kernel: the maximum dynamic shared memory per block allowed so far
};

namespace bmrt::cuda {

/// A captured graph, and the values that it was captured with.
struct Captured {
  std::vector<uint64_t> bindings; ///< addresses and dims
  CUgraphExec graph;
};

} // namespace bmrt::cuda

struct bmrt_queue_t {
  explicit bmrt_queue_t(bmrt_device_t &device) : device(device) {}

  bmrt_device_t &device;
  bmrt::cuda::CUstream stream = nullptr; ///< the queue's own stream, in which graphs are captured
  bmrt::cuda::CUstream target = nullptr; ///< the stream that executes the work: the queue's own or the caller's
  /// By the stream's offset; those of the last few sizes and addresses, the most recent first.
  std::map<std::pair<const bmrt_program_t *, uint64_t>, std::list<bmrt::cuda::Captured>> graphs;
  std::string last; ///< the layers in which a fault may have happened, for messages
  bmrt::cuda::Staging staging{device.driver};
  bool hasRun = false; ///< false: copies are only of constants and states, which the caller waits for anyway
  std::vector<bmrt::cuda::CUevent> events; ///< recorded between the launches of a timed stream
};

namespace bmrt::cuda {

/// Makes the device's context current on this thread for the lifetime of the object.
class Current {
public:
  explicit Current(const bmrt_device_t &device) : driver(device.driver) {
    isPushed = driver.cuCtxPushCurrent_v2(device.context) == CUDA_SUCCESS;
  }
  ~Current() {
    CUcontext popped;
    if (isPushed) {
      driver.cuCtxPopCurrent_v2(&popped);
    }
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const Driver &driver;
  bool isPushed;
};

/// Returns the result of |body|, or BMRT_NO_MEMORY if it throws std::bad_alloc.
template <typename Body>
bmrt_code_t guarded(bmrt_status_t *status, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return BMRT_FAIL(status, NO_MEMORY, "no host memory for the back end of family cuda");
  }
}

/// Returns true if a kernel faulted, so that the context is lost.
bool isFault(CUresult error);

/// Reports "|what| on NAME: the driver's message", and whether the context is lost.
bmrt_code_t failDriver(bmrt_status_t *status, const bmrt_device_t &device, const char *what, CUresult error);

/// Create, if the device supports it, and destroy the pool of a device's memory.
void openPool(bmrt_device_t &device);
void closePool(bmrt_device_t &device);

// Functions of the back end (bmrt/backend.h) for memory, in DeviceMemory.cpp.
bmrt_code_t allocate(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status);
void release(bmrt_device_t *device, void *address);

// Functions of the back end (bmrt/backend.h) that take a queue, in Queue.cpp.
bmrt_code_t makeQueue(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status);
void destroyQueue(bmrt_queue_t *queue);
bmrt_code_t copy(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                 bmrt_status_t *status);
bmrt_code_t run(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status);
bmrt_code_t runTimed(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream,
                     const bmrt_part_sink_t *sink, bmrt_status_t *status);
bool isDone(bmrt_queue_t *queue);
bmrt_code_t useStream(bmrt_queue_t *queue, void *stream, bmrt_status_t *status);
bmrt_code_t wait(bmrt_queue_t *queue, const bmrt_interrupt_t *interrupt, bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_OBJECTS_H
