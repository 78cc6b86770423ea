//===- Streams.cpp - Launches, streams and events -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"

#include <chrono>
#include <cstring>

using namespace ptx;

namespace ptx {

CUresult makeCall(CUfunction function, const uint32_t *grid, const uint32_t *block, uint32_t sharedBytes,
                  void **parameters, void **extra, KernelCall &call) {
  if (!function) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const Kernel &kernel = *function->kernel;
  uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
  bool isGrid =
      grid[0] != 0 && grid[1] != 0 && grid[2] != 0 && grid[0] <= 0x7fffffff && grid[1] <= 65535 && grid[2] <= 65535;
  uint64_t most = kernel.maxThreads == 0 ? 1024 : kernel.maxThreads;
  bool isBlock =
      threads != 0 && threads <= most && block[2] <= 64 && (!kernel.hasFixedThreads || threads == kernel.maxThreads);
  if (!isGrid || !isBlock || int64_t(sharedBytes) > function->maxDynamicShared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call.function = function;
  std::copy(grid, grid + 3, call.grid);
  std::copy(block, block + 3, call.block);
  call.sharedBytes = sharedBytes;
  call.parameters.assign(kernel.parameterBytes, 0);
  if (extra) {
    const void *buffer = nullptr;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      buffer = *extra == CU_LAUNCH_PARAM_BUFFER_POINTER ? extra[1] : buffer;
      bytes = *extra == CU_LAUNCH_PARAM_BUFFER_SIZE ? *static_cast<size_t *>(extra[1]) : bytes;
    }
    if (bytes < kernel.parameterBytes || !buffer) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(call.parameters.data(), buffer, kernel.parameterBytes);
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (!parameters || !parameters[i]) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(call.parameters.data() + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].bytes);
  }
  return CUDA_SUCCESS;
}

} // namespace ptx

namespace {

double milliseconds() {
  if (driver().options.clock != Options::Host) {
    return double(driver().nanoseconds) * 1e-6;
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Looks up the context and the stream; the caller holds the lock.
CUresult findBoth(CUcontext &context, CUstream &stream) {
  CUresult result = currentContext(context);
  return result == CUDA_SUCCESS ? findStream(context, stream) : result;
}

CUresult launch(CUfunction function, const uint32_t *grid, const uint32_t *block, uint32_t sharedBytes, CUstream stream,
                void **parameters, void **extra) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Task task;
  task.type = CU_GRAPH_NODE_TYPE_KERNEL;
  result = makeCall(function, grid, block, sharedBytes, parameters, extra, task.kernel);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (function->module->context != context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (++driver().launches == driver().options.failLaunch) {
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  return enqueue(stream, std::move(task));
}

} // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                        unsigned int blockX, unsigned int blockY, unsigned int blockZ, unsigned int sharedBytes,
                        CUstream stream, void **parameters, void **extra) {
  uint32_t grid[] = {gridX, gridY, gridZ}, block[] = {blockX, blockY, blockZ};
  return launch(function, grid, block, sharedBytes, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                                   unsigned int blockX, unsigned int blockY, unsigned int blockZ,
                                   unsigned int sharedBytes, CUstream stream, void **parameters) {
  int blocks = 0;
  CUresult result =
      cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, int(blockX * blockY * blockZ), sharedBytes);
  uint64_t room = uint64_t(blocks) * uint64_t(deviceModel(driver().options.capability).sms);
  if (result == CUDA_SUCCESS && uint64_t(gridX) * gridY * gridZ > room) {
    return CUresult(720); // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
  }
  return result == CUDA_SUCCESS ? cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes,
                                                 stream, parameters, nullptr)
                                : result;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    // Supports 0 ignore, 2 cooperative and 8 priority; other attributes change what a kernel may do.
    int id = config->attrs[i].id;
    if (id != 0 && id != 2 && id != 8) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  uint32_t grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  uint32_t block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  return launch(function, grid, block, config->sharedMemBytes, config->hStream, parameters, extra);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *userData) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  driver().scheduler.startBackground(); // the caller may wait for an effect of the function
  return enqueue(stream, {CU_GRAPH_NODE_TYPE_HOST, {}, [=] { function(userData); }});
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!stream || flags > CU_STREAM_NON_BLOCKING) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Lock lock(driver().mutex);
  auto made = std::make_unique<CUstream_st>();
  made->context = context;
  made->flags = flags;
  *stream = driver().streams.add(std::move(made));
  context->streams.insert(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Lock lock(driver().mutex);
  if (!driver().streams.has(stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  // Its submitted work continues.
  stream->context->streams.erase(stream);
  driver().streams.remove(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  CUcontext context = nullptr;
  std::vector<WorkRef> work;
  {
    Lock lock(driver().mutex);
    CUresult result = findBoth(context, stream);
    if (result != CUDA_SUCCESS) {
      return result;
    }
    if (stream->capture) {
      stream->isInvalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    work = stream == context->legacy.get() ? dependenciesOf(stream) : std::vector<WorkRef>{stream->last};
  }
  for (const WorkRef &each : work) {
    finish(context, each);
  }
  return statusOf(context);
}

CUresult cuStreamQuery(CUstream stream) {
  CUcontext context = nullptr;
  WorkRef work;
  {
    Lock lock(driver().mutex);
    CUresult result = findBoth(context, stream);
    if (result != CUDA_SUCCESS) {
      return result;
    }
    work = stream->last;
  }
  driver().scheduler.advance();
  if (statusOf(context) != CUDA_SUCCESS) {
    return statusOf(context);
  }
  return driver().scheduler.isDone(work) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!driver().events.has(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!event->isRecorded) {
    return CUDA_SUCCESS;
  }
  if (event->capture) { // the stream joins the capture
    if (stream->capture && stream->capture != event->capture) {
      stream->isInvalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    stream->frontier.insert(stream->frontier.end(), event->nodes.begin(), event->nodes.end());
    return CUDA_SUCCESS;
  }
  if (stream->capture) {
    stream->isInvalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  std::vector<WorkRef> dependencies = dependenciesOf(stream);
  dependencies.push_back(event->work);
  stream->last = submit(context, dependencies, std::make_shared<Task>());
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  Lock lock(driver().mutex);
  return findBoth(*context, stream);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  *flags = result == CUDA_SUCCESS ? stream->flags : 0;
  return result;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  auto made = std::make_unique<CUevent_st>();
  made->context = context;
  made->flags = flags;
  *event = driver().events.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Lock lock(driver().mutex);
  if (!driver().events.has(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  driver().events.remove(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!driver().events.has(event) || event->context != context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  event->isRecorded = true;
  event->capture = stream->capture;
  event->nodes = stream->frontier;
  if (stream->capture) {
    return CUDA_SUCCESS;
  }
  event->time = std::make_shared<double>(0);
  return enqueue(stream, {CU_GRAPH_NODE_TYPE_EMPTY, {}, [time = event->time] { *time = milliseconds(); }},
                 &event->work);
}

CUresult cuEventSynchronize(CUevent event) {
  WorkRef work;
  CUcontext context = nullptr;
  {
    Lock lock(driver().mutex);
    if (!driver().events.has(event)) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->capture) {
      return CUDA_ERROR_CAPTURED_EVENT;
    }
    work = event->work;
    context = event->context;
  }
  return finish(context, work);
}

CUresult cuEventQuery(CUevent event) {
  WorkRef work;
  CUcontext context = nullptr;
  {
    Lock lock(driver().mutex);
    if (!driver().events.has(event)) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->capture) {
      return CUDA_ERROR_CAPTURED_EVENT;
    }
    work = event->work;
    context = event->context;
  }
  driver().scheduler.advance();
  if (statusOf(context) != CUDA_SUCCESS) {
    return statusOf(context);
  }
  return driver().scheduler.isDone(work) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *result, CUevent begin, CUevent end) {
  Lock lock(driver().mutex);
  if (!driver().events.has(begin) || !driver().events.has(end) || !begin->isRecorded || !end->isRecorded ||
      begin->capture || end->capture || ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!driver().scheduler.isDone(begin->work) || !driver().scheduler.isDone(end->work)) {
    return CUDA_ERROR_NOT_READY;
  }
  *result = float(*end->time - *begin->time);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *result, CUevent begin, CUevent end) {
  return cuEventElapsedTime(result, begin, end);
}
