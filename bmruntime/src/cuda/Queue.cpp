// SPDX-License-Identifier: Apache-2.0
//===- Queue.cpp - Copies and launches on a stream of a GPU ---------------===//
//
// The launches of a step are captured into a graph when the step first runs with the addresses and sizes of its
// tensors. Graphs of the last few addresses and sizes are kept.
//
//===----------------------------------------------------------------------===//
#include "Objects.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace bmrt::cuda;
using bmodel::cuda::Argument;
using bmodel::cuda::ArgumentKind;
using bmodel::cuda::Launch;

namespace {

/// Like failDriver, but names the layers that ran last: a later call reports the fault of an earlier kernel.
bmrt_code_t failQueue(bmrt_status_t *status, const bmrt_queue_t &queue, const char *what, CUresult error) {
  if (!isFault(error) || queue.last.empty()) {
    return failDriver(status, queue.device, what, error);
  }
  std::string text = "one of the layers " + queue.last + " failed (set BMRT_CUDA_BLOCKING=1 to find out which)";
  return failDriver(status, queue.device, text.c_str(), error);
}

uint64_t valueOf(const Argument &argument, const bmrt_stream_t &stream) {
  if (argument.kind == ArgumentKind::dim) {
    return uint64_t(stream.dims[argument.index]);
  }
  if (argument.kind != ArgumentKind::pointer) {
    return argument.value;
  }
  bool isWorkspace = argument.index == stream.input_count + stream.output_count;
  return reinterpret_cast<uint64_t>(isWorkspace ? stream.workspace : stream.tensors[argument.index]) + argument.value;
}

bool blocks() {
  const char *variable = getenv("BMRT_CUDA_BLOCKING");
  return variable && *variable && *variable != '0';
}

CUresult launchOne(const bmrt_program_t &program, const bmrt_stream_t &stream, const Command &command,
                   CUstream target) {
  const Launch &l = command.launch;
  std::vector<uint64_t> values;
  std::vector<void *> parameters;
  for (const Argument &argument : command.arguments) {
    values.push_back(valueOf(argument, stream));
  }
  for (uint64_t &value : values) {
    parameters.push_back(&value);
  }
  return program.device.driver.cuLaunchKernel(program.functions[l.kernel], l.grid[0], l.grid[1], l.grid[2], l.block[0],
                                              l.block[1], l.block[2], l.sharedBytes, target, parameters.data(),
                                              nullptr);
}

bmrt_code_t failLayer(bmrt_status_t *status, const bmrt_queue_t &queue, const bmrt_stream_t &stream,
                      const Command &command, CUresult error) {
  const uint32_t layer = command.launch.layer;
  std::string what = std::string("layer ") + (layer < stream.layer_count ? stream.layers[layer] : "?") + " failed";
  return failDriver(status, queue.device, what.c_str(), error);
}

/// Launches all kernels of |stream|. With |waits|, executes them in the target stream and waits after each, so that a
/// fault can be attributed; otherwise captures them in the queue's own stream.
bmrt_code_t launchAll(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream, bool waits,
                      bmrt_status_t *status) {
  const CUstream target = waits ? queue.target : queue.stream;
  std::vector<Command> commands;
  BMRT_RETURN_IF_ERROR(readCommands(program.tables, stream, commands, status));
  for (const Command &command : commands) {
    CUresult error = launchOne(program, stream, command, target);
    error = error || !waits ? error : queue.device.driver.cuStreamSynchronize(target);
    if (error) {
      return failLayer(status, queue, stream, command, error);
    }
  }
  return BMRT_OK;
}

/// Ensures that the queue has at least |launches| + 1 events.
CUresult reserveEvents(bmrt_queue_t &queue, size_t launches) {
  while (queue.events.size() <= launches) {
    CUevent event = nullptr;
    if (CUresult error = queue.device.driver.cuEventCreate(&event, 0)) {
      return error;
    }
    queue.events.push_back(event);
  }
  return CUDA_SUCCESS;
}

/// Launches all of |commands| with an event after each, waits, and reports the times between the events.
bmrt_code_t timeAll(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream,
                    const std::vector<Command> &commands, const bmrt_part_sink_t &sink, bmrt_status_t *status) {
  const Driver &driver = queue.device.driver;
  CUresult error = reserveEvents(queue, commands.size());
  error = error ? error : driver.cuEventRecord(queue.events[0], queue.target);
  for (size_t i = 0; i < commands.size() && !error; ++i) {
    if ((error = launchOne(program, stream, commands[i], queue.target))) {
      return failLayer(status, queue, stream, commands[i], error);
    }
    error = driver.cuEventRecord(queue.events[i + 1], queue.target);
  }
  error = error ? error : driver.cuStreamSynchronize(queue.target);
  for (size_t i = 0; i < commands.size() && !error; ++i) {
    float milliseconds = 0;
    error = driver.cuEventElapsedTime(&milliseconds, queue.events[i], queue.events[i + 1]);
    if (!error) {
      sink.tell(sink.user, commands[i].launch.layer, uint64_t(double(milliseconds) * 1e6));
    }
  }
  return error ? failQueue(status, queue, "launches cannot be timed", error) : BMRT_OK;
}

void rememberLayers(bmrt_queue_t &queue, const bmrt_stream_t &stream) {
  queue.last = stream.layer_count
                   ? std::string("of ") + stream.layers[0] + " .. " + stream.layers[stream.layer_count - 1]
                   : "without names";
}

/// Captures the launches of a stream into a graph.
bmrt_code_t capture(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream, CUgraphExec &out,
                    bmrt_status_t *status) {
  constexpr int kThreadLocal = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const Driver &driver = queue.device.driver;
  if (CUresult error = driver.cuStreamBeginCapture_v2(queue.stream, kThreadLocal)) {
    return failDriver(status, queue.device, "a graph cannot be captured", error);
  }
  bmrt_code_t launched = launchAll(queue, program, stream, /*waits=*/false, status);
  CUgraph graph = nullptr;
  CUresult error = driver.cuStreamEndCapture(queue.stream, &graph);
  if (launched == BMRT_OK && !error) {
    error = driver.cuGraphInstantiateWithFlags(&out, graph, 0);
  }
  if (graph) {
    driver.cuGraphDestroy(graph);
  }
  BMRT_RETURN_IF_ERROR(launched);
  return error ? failDriver(status, queue.device, "a graph cannot be captured", error) : BMRT_OK;
}

/// Returns everything that a graph of |stream| depends on.
std::vector<uint64_t> bindingsOf(const bmrt_stream_t &stream) {
  const uint32_t tensors = stream.input_count + stream.output_count;
  std::vector<uint64_t> bindings;
  for (uint32_t i = 0; i < tensors; ++i) {
    bindings.push_back(reinterpret_cast<uint64_t>(stream.tensors[i]));
  }
  bindings.push_back(reinterpret_cast<uint64_t>(stream.workspace));
  for (uint32_t i = 0; i < stream.dim_count; ++i) {
    bindings.push_back(uint64_t(stream.dims[i]));
  }
  if (stream.dim_count) { // readCommands() compares them with the reach of pointers
    bindings.insert(bindings.end(), stream.tensor_bytes, stream.tensor_bytes + tensors);
  }
  return bindings;
}

/// Returns the graph of |stream| at its sizes and addresses; captures it if it is not one of the last few.
bmrt_code_t findGraph(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream,
                      CUgraphExec &graph, bmrt_status_t *status) {
  constexpr size_t kRemembered = 8; // as many vectors of sizes as the runtime remembers
  std::vector<uint64_t> bindings = bindingsOf(stream);
  std::list<Captured> &known = queue.graphs[{&program, stream.offset}];
  auto found = std::find_if(known.begin(), known.end(), [&](const Captured &one) { return one.bindings == bindings; });
  if (found != known.end()) {
    known.splice(known.begin(), known, found);
  } else {
    BMRT_RETURN_IF_ERROR(capture(queue, program, stream, graph, status));
    known.push_front({std::move(bindings), graph});
  }
  if (known.size() > kRemembered) { // a graph that is still running is freed when it has finished
    queue.device.driver.cuGraphExecDestroy(known.back().graph);
    known.pop_back();
  }
  graph = known.front().graph;
  return BMRT_OK;
}

bmrt_code_t runStream(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream,
                      bmrt_status_t *status) {
  if (blocks()) {
    return launchAll(queue, program, stream, /*waits=*/true, status);
  }
  CUgraphExec graph = nullptr;
  BMRT_RETURN_IF_ERROR(findGraph(queue, program, stream, graph, status));
  rememberLayers(queue, stream);
  CUresult error = queue.device.driver.cuGraphLaunch(graph, queue.target);
  return error ? failDriver(status, queue.device, "a graph cannot be launched", error) : BMRT_OK;
}

} // namespace

bmrt_code_t bmrt::cuda::makeQueue(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status) {
  return guarded(status, [&] {
    constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING
    Current current(*device);
    auto queue = std::make_unique<bmrt_queue_t>(*device);
    if (CUresult error = device->driver.cuStreamCreate(&queue->stream, kNonBlocking)) {
      return failDriver(status, *device, "a stream cannot be created", error);
    }
    queue->target = queue->stream;
    *out = queue.release();
    return BMRT_OK;
  });
}

void bmrt::cuda::destroyQueue(bmrt_queue_t *queue) {
  const Driver &driver = queue->device.driver;
  Current current(queue->device);
  driver.cuStreamSynchronize(queue->stream); // the caller's stream may be gone, and has been waited for
  for (auto &[key, all] : queue->graphs) {
    for (const Captured &captured : all) {
      driver.cuGraphExecDestroy(captured.graph);
    }
  }
  for (CUevent event : queue->events) {
    driver.cuEventDestroy_v2(event);
  }
  queue->staging.release();
  driver.cuStreamDestroy_v2(queue->stream);
  delete queue;
}

/// Waits for the queue and delivers what copies have staged.
static CUresult finishWork(bmrt_queue_t &queue) {
  const CUresult error = queue.device.driver.cuStreamSynchronize(queue.target);
  queue.staging.finish(/*isDelivering=*/!error);
  return error;
}

/// Copies to or from the host's memory. Uses the driver's copy directly if the memory is pinned or no staging memory is
/// left.
static CUresult copyWithHost(bmrt_queue_t &queue, bool isToChip, void *to, const void *from, uint64_t bytes) {
  constexpr uint64_t kChunk = 1 << 20; // the GPU copies one chunk while the next is staged
  const Driver &driver = queue.device.driver;
  const auto chip = reinterpret_cast<CUdeviceptr>(isToChip ? to : from);
  const void *host = isToChip ? from : to;
  // An earlier copy from the chip to the same memory must be complete.
  if (queue.staging.willDeliver(host, bytes)) {
    if (CUresult error = finishWork(queue)) {
      return error;
    }
  }
  char *staged = queue.hasRun && !queue.staging.isPinned(host) ? queue.staging.take(bytes) : nullptr;
  if (!isToChip) {
    if (staged) {
      queue.staging.deliverLater(to, staged, bytes);
    }
    return driver.cuMemcpyDtoHAsync_v2(staged ? staged : to, chip, bytes, queue.target);
  }
  if (!staged) {
    return driver.cuMemcpyHtoDAsync_v2(chip, from, bytes, queue.target);
  }
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const uint64_t part = std::min(kChunk, bytes - at);
    memcpy(staged + at, static_cast<const char *>(from) + at, part);
    if (CUresult error = driver.cuMemcpyHtoDAsync_v2(chip + at, staged + at, part, queue.target)) {
      return error;
    }
  }
  return CUDA_SUCCESS;
}

bmrt_code_t bmrt::cuda::copy(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                             bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    if (bytes == 0) {
      return bmrt_code_t(BMRT_OK);
    }
    CUresult error =
        direction == BMRT_COPY_ON_CHIP
            ? queue->device.driver.cuMemcpyDtoDAsync_v2(reinterpret_cast<CUdeviceptr>(to),
                                                        reinterpret_cast<CUdeviceptr>(from), bytes, queue->target)
            : copyWithHost(*queue, direction == BMRT_COPY_TO_CHIP, to, from, bytes);
    return error ? failQueue(status, *queue, "a copy failed", error) : bmrt_code_t(BMRT_OK);
  });
}

bmrt_code_t bmrt::cuda::run(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream,
                            bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    if (stream->interrupt && stream->interrupt->is_requested(stream->interrupt->user)) {
      return bmrt::core::failCancelled(status);
    }
    queue->hasRun = true;
    return runStream(*queue, *program, *stream, status);
  });
}

bmrt_code_t bmrt::cuda::runTimed(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream,
                                 const bmrt_part_sink_t *sink, bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    std::vector<Command> commands;
    BMRT_RETURN_IF_ERROR(readCommands(program->tables, *stream, commands, status));
    rememberLayers(*queue, *stream);
    return timeAll(*queue, *program, *stream, commands, *sink, status);
  });
}

bool bmrt::cuda::isDone(bmrt_queue_t *queue) {
  Current current(queue->device);
  return queue->device.driver.cuStreamQuery(queue->target) != CUDA_ERROR_NOT_READY;
}

bmrt_code_t bmrt::cuda::wait(bmrt_queue_t *queue, const bmrt_interrupt_t *, bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    const CUresult error = finishWork(*queue);
    return error ? failQueue(status, *queue, "a wait failed", error) : BMRT_OK;
  });
}

bmrt_code_t bmrt::cuda::useStream(bmrt_queue_t *queue, void *stream, bmrt_status_t *) {
  queue->target = stream ? static_cast<CUstream>(stream) : queue->stream;
  return BMRT_OK;
}
