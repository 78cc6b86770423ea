//===- Driver.h - Objects behind the driver's handles ----------------------===//
// SPDX-License-Identifier: Apache-2.0
// One lock, Driver::mutex, guards all objects; work is executed outside of it.
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_DRIVER_H
#define TESSERA_REGRESSION_CUDA_MACHINE_DRIVER_H

#define CUDA_DRIVER_API __attribute__((visibility("default")))
#include "regression/cuda/machine/CudaDriver.h"

#include "regression/cuda/machine/Launch.h"
#include "regression/cuda/machine/Scheduler.h"

#include <map>
#include <set>

namespace ptx {

/// A launch as it was asked for.
struct KernelCall {
  CUfunction function = nullptr;
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t sharedBytes = 0;
  std::vector<uint8_t> parameters;
};

/// What a stream or a graph's node does. |action| is of tasks other than kernels; it throws Fault.
struct Task {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  KernelCall kernel;
  std::function<void()> action;
};

/// Live objects of one kind: a handle that is none of them is refused and not followed.
template <class T>
class Registry {
public:
  T *add(std::unique_ptr<T> object) {
    T *handle = object.get();
    objects[handle] = std::move(object);
    return handle;
  }
  bool has(const T *handle) const { return objects.count(const_cast<T *>(handle)) != 0; }
  void remove(T *handle) { objects.erase(handle); }
  auto begin() { return objects.begin(); }
  auto end() { return objects.end(); }

private:
  std::map<T *, std::unique_ptr<T>> objects;
};

} // namespace ptx

struct CUgraphNode_st {
  ptx::Task task;
  std::vector<CUgraphNode> dependencies;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes; ///< each after those that it depends on
};

struct CUgraphExec_st {
  CUcontext context = nullptr;
  std::vector<CUgraphNode> origin; ///< the graph's node of each of these
  std::vector<std::shared_ptr<ptx::Task>> tasks;
  std::vector<std::vector<size_t>> dependencies;
  ptx::WorkRef last;
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  ptx::WorkRef last;
  /// The capture that this stream takes part in: its graph, and the nodes that the next one depends on.
  std::shared_ptr<CUgraph_st> capture;
  std::vector<CUgraphNode> frontier;
  bool isOrigin = false, isInvalidated = false;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id capturing; ///< the thread that began the capture
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  bool isRecorded = false;
  ptx::WorkRef work;
  std::shared_ptr<double> time; ///< milliseconds; set when the work is executed
  std::shared_ptr<CUgraph_st> capture;
  std::vector<CUgraphNode> nodes;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  std::shared_ptr<const ptx::Kernel> kernel;
  int maxDynamicShared = 0;
};

struct CUmod_st {
  CUcontext context = nullptr;
  int version = 0, target = 0;
  ptx::GlobalSymbols symbols;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct CUctx_st {
  int device = 0;
  bool isPrimary = false;
  int retained = 0;
  std::atomic<int> lost{CUDA_SUCCESS}; ///< what every call answers once a kernel has faulted
  std::set<CUstream> streams;          ///< created ones
  std::unique_ptr<CUstream_st> legacy;
  std::map<std::thread::id, std::unique_ptr<CUstream_st>> perThread;
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::map<int, uint64_t> attributes;
};

namespace ptx {

struct Driver {
  ~Driver();

  std::recursive_mutex mutex;
  bool isInitialised = false;
  Options options;
  Memory memory;
  CountTable counts;
  Registry<CUctx_st> contexts;
  Registry<CUmod_st> modules;
  Registry<CUstream_st> streams;
  Registry<CUevent_st> events;
  Registry<CUgraph_st> graphs;
  Registry<CUgraphExec_st> executables;
  Registry<CUmemPoolHandle_st> pools;
  std::map<int, CUcontext> primaries;
  std::map<int, CUmemoryPool> defaultPools;
  std::map<uint64_t, CUcontext> owners; ///< of device memory
  std::string lastFinding;
  uint64_t allocations = 0, launches = 0;
  std::atomic<uint64_t> executed{0};    ///< kernels
  std::atomic<uint64_t> nanoseconds{0}; ///< of the device's clock (Options::Clock)
  Scheduler scheduler;                  ///< last, so that it ends first
};

Driver &driver();

using Lock = std::lock_guard<std::recursive_mutex>;

/// What the machine's device is, by its compute capability.
struct DeviceModel {
  const char *name;
  int capability, sms, clockKhz, memoryClockKhz, busBits, l2Bytes, sharedPerSm, sharedPerBlock, threadsPerSm,
      blocksPerSm;
};
const DeviceModel &deviceModel(int capability);

/// The calling thread's context if it is in order; else what to answer.
CUresult currentContext(CUcontext &context);
/// CUDA_SUCCESS if the stream is one of |context|; null and the other special ones are replaced by what they mean.
CUresult findStream(CUcontext context, CUstream &stream);
/// Adds |task| to the stream, or to the graph that it captures.
CUresult enqueue(CUstream stream, Task task, WorkRef *work = nullptr);
/// Submits one task with explicit dependencies. Tasks of a lost context are not executed.
WorkRef submit(CUcontext context, const std::vector<WorkRef> &dependencies, std::shared_ptr<Task> task);
/// Work that an operation of |stream| has to wait for.
std::vector<WorkRef> dependenciesOf(CUstream stream);
/// Fails calls that may not be made while a stream captures (of another thread's captures only those of mode GLOBAL
/// count), and invalidates the capture, as the driver does.
CUresult refuseInCapture(CUcontext context);
/// Waits outside of the lock, and answers what became of the context.
CUresult finish(CUcontext context, const WorkRef &work);
CUresult finishAll(CUcontext context);
CUresult statusOf(CUcontext context);
/// Fills in |call| from cuLaunchKernel's arguments, checked.
CUresult makeCall(CUfunction function, const uint32_t *grid, const uint32_t *block, uint32_t sharedBytes,
                  void **parameters, void **extra, KernelCall &call);
void runKernel(CUcontext context, const KernelCall &call);
void destroyContext(CUcontext context);

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_DRIVER_H
