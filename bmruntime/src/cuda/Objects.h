// SPDX-License-Identifier: Apache-2.0
//===- Objects.h - What the back end's handles point to -------------------===//
#ifndef BMRT_CUDA_OBJECTS_H
#define BMRT_CUDA_OBJECTS_H

#include "../core/Status.h"
#include "Driver.h"
#include "Program.h"
#include "Staging.h"
#include "bmrt/backend.h"

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
  bmrt::cuda::CUmemoryPool pool; ///< null where the device has none: then memory is the driver's
  bmrt::cuda::CUstream memoryStream;
};

struct bmrt_program_t {
  bmrt_device_t &device;
  bmrt::cuda::Tables tables;
  bmrt::cuda::CUmodule module = nullptr;
  std::vector<bmrt::cuda::CUfunction> functions;
  std::vector<uint32_t> sharedBytes; ///< by kernel: the most that a launch may give each block
};

namespace bmrt::cuda {

/// What a graph was captured from.
struct Captured {
  std::vector<uint64_t> bindings; ///< addresses and dims
  CUgraphExec graph;
};

} // namespace bmrt::cuda

struct bmrt_queue_t {
  explicit bmrt_queue_t(bmrt_device_t &device) : device(device) {}

  bmrt_device_t &device;
  bmrt::cuda::CUstream stream = nullptr; ///< its own, in which graphs are captured
  bmrt::cuda::CUstream target = nullptr; ///< where work goes: the same, or the caller's
  std::map<std::pair<const bmrt_program_t *, uint64_t>, bmrt::cuda::Captured> graphs; ///< by the stream's offset
  std::string last; ///< what a fault may have happened in
  bmrt::cuda::Staging staging{device.driver};
  bool hasRun = false; ///< before that, copies are of constants and states, which are waited for anyway
  std::vector<bmrt::cuda::CUevent> events; ///< between the launches of a stream that is timed
};

namespace bmrt::cuda {

/// Makes the device's context the thread's for a while.
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

/// |body|'s code, or that there is no memory of the host's.
template <typename Body>
bmrt_code_t guarded(bmrt_status_t *status, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory of the host's for the back end of family cuda");
  }
}

/// Whether a kernel faulted, so that the context is lost.
bool isFault(CUresult error);

/// "|what| on NAME: the driver's words", and what has become of the context.
bmrt_code_t failDriver(bmrt_status_t *status, const bmrt_device_t &device, const char *what, CUresult error);

/// Makes the pool that a device's memory comes from, if it can have one, and ends it.
void openPool(bmrt_device_t &device);
void closePool(bmrt_device_t &device);

// Of the table of the back end (bmrt/backend.h), those of memory: DeviceMemory.cpp.
bmrt_code_t allocate(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status);
void release(bmrt_device_t *device, void *address);

// Of the table of the back end (bmrt/backend.h), those that take a queue: Queue.cpp.
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

#endif // BMRT_CUDA_OBJECTS_H
