//===- Driver.cpp - Objects behind the driver's handles -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"

#include "bmruntime/ptx_machine/Execution/Grid.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <unistd.h>

namespace ptx {
namespace {

CUresult resultOf(Fault::Code code) {
  switch (code) {
  case Fault::IllegalAddress:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case Fault::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case Fault::IllegalInstruction:
  case Fault::Trap: // like __trap() on a GPU
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

void report(CUcontext context, const Fault &fault) {
  Lock lock(driver().mutex);
  driver().lastFinding = fault.text;
  context->lost = resultOf(fault.code);
  std::fprintf(stderr, "PTX machine: %s\n", fault.text.c_str());
}

} // namespace

Driver &driver() {
  static Driver instance;
  return instance;
}

Driver::~Driver() {
  if (options.countsFile.empty()) {
    return;
  }
  std::string name = options.countsFile;
  size_t at = name.find("%p");
  if (at != std::string::npos) {
    name.replace(at, 2, std::to_string(getpid()));
  }
  std::ofstream(name) << counts.json();
}

WorkRef submit(CUcontext context, const std::vector<WorkRef> &dependencies, std::shared_ptr<Task> task) {
  return driver().scheduler.submit(context, dependencies, [context, task] {
    if (context->lost != CUDA_SUCCESS) {
      return;
    }
    try {
      if (task->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        runKernel(context, task->kernel);
      } else if (task->action) {
        task->action();
      }
    } catch (const Fault &fault) {
      report(context, fault);
    }
  });
}

std::vector<WorkRef> dependenciesOf(CUstream stream) {
  CUcontext context = stream->context;
  std::vector<WorkRef> result = {stream->last};
  if (stream == context->legacy.get()) {
    for (CUstream each : context->streams) {
      if (!(each->flags & CU_STREAM_NON_BLOCKING)) {
        result.push_back(each->last);
      }
    }
    for (auto &each : context->perThread) {
      result.push_back(each.second->last);
    }
  } else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
    result.push_back(context->legacy->last);
  }
  return result;
}

CUresult enqueue(CUstream stream, Task task, WorkRef *work) {
  CUcontext context = stream->context;
  if (stream->capture) {
    if (stream->isInvalidated) {
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    auto node = std::make_unique<CUgraphNode_st>();
    node->task = std::move(task);
    node->dependencies = stream->frontier;
    stream->frontier = {node.get()};
    stream->capture->nodes.push_back(std::move(node));
    return CUDA_SUCCESS;
  }
  if (stream == context->legacy.get()) {
    for (CUstream each : context->streams) {
      if (each->capture && !(each->flags & CU_STREAM_NON_BLOCKING)) {
        each->isInvalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    }
  }
  stream->last = submit(context, dependenciesOf(stream), std::make_shared<Task>(std::move(task)));
  if (work) {
    *work = stream->last;
  }
  return CUDA_SUCCESS;
}

CUresult statusOf(CUcontext context) { return CUresult(context->lost.load()); }

CUresult finish(CUcontext context, const WorkRef &work) {
  driver().scheduler.wait(work);
  return statusOf(context);
}

CUresult finishAll(CUcontext context) {
  driver().scheduler.waitForAll(context);
  return statusOf(context);
}

CUresult rejectInCapture(CUcontext context) {
  Lock lock(driver().mutex);
  for (CUstream each : context->streams) {
    bool isConcerned =
        each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (each->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && each->capturing == std::this_thread::get_id());
    if (each->capture && each->isOrigin && isConcerned) {
      each->isInvalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult findStream(CUcontext context, CUstream &stream) {
  Driver &machine = driver();
  if (!stream || stream == CU_STREAM_LEGACY) {
    stream = context->legacy.get();
    return CUDA_SUCCESS;
  }
  if (stream == CU_STREAM_PER_THREAD) {
    auto &mine = context->perThread[std::this_thread::get_id()];
    if (!mine) {
      mine = std::make_unique<CUstream_st>();
      mine->context = context;
    }
    stream = mine.get();
    return CUDA_SUCCESS;
  }
  if (!machine.streams.has(stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return stream->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Returns how far a launch advances the device clock. With Clock::Issue, that is the time of the SM with the most
/// blocks, if each of its four schedulers issued one warp instruction per cycle at 1 GHz.
static uint64_t nanosecondsOf(const Launch &launch, const Counts &counts, Options::Clock clock) {
  if (clock == Options::Blocks) {
    return 1000 * launch.blocks();
  }
  constexpr uint64_t kSchedulers = 4;
  const uint64_t instructions = std::accumulate(counts.executed.begin(), counts.executed.end(), uint64_t(0));
  const uint64_t rounds = (launch.blocks() + launch.sms - 1) / launch.sms;
  return instructions * rounds / launch.blocks() / kSchedulers;
}

void runKernel(CUcontext context, const KernelCall &call) {
  Driver &machine = driver();
  if (++machine.executed == machine.options.faultLaunch) {
    throw Fault{Fault::IllegalAddress,
                "kernel '" + call.function->kernel->name + "' faults by PTX_MACHINE_FAULT_LAUNCH"};
  }
  Launch launch;
  launch.kernel = call.function->kernel;
  std::copy(call.grid, call.grid + 3, launch.grid);
  std::copy(call.block, call.block + 3, launch.block);
  launch.dynamicShared = call.sharedBytes;
  launch.parameters = call.parameters;
  const DeviceModel &model = deviceModel(machine.options.capability);
  launch.sms = uint32_t(model.sms);
  uint32_t byThreads = uint32_t(model.threadsPerSm) / std::max(launch.threads(), 1u);
  uint32_t byShared = uint32_t(model.sharedPerSm) / (launch.sharedBytes() + 1024);
  uint32_t perSm = std::max(1u, std::min({byThreads, byShared, uint32_t(model.blocksPerSm)}));
  launch.allocations = machine.memory.all();
  auto isElsewhere = [&](const AllocationRef &each) { return !each->isHost && each->device != context->device; };
  launch.allocations.erase(std::remove_if(launch.allocations.begin(), launch.allocations.end(), isElsewhere),
                           launch.allocations.end());
  const Counts counts = execute(launch, machine.options, perSm * launch.sms, machine.counts);
  machine.nanoseconds += nanosecondsOf(launch, counts, machine.options.clock);
}

} // namespace ptx
