//===- Driver.h - Objects behind the driver's handles ---------------------===//
// SPDX-License-Identifier: Apache-2.0
// One lock, Driver::mutex, guards all objects; work is executed without holding it.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_DRIVER_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_DRIVER_H

#define CUDA_DRIVER_API __attribute__((visibility("default")))
#include "bmruntime/ptx_machine/Driver/CudaDriver.h"

#include "bmruntime/ptx_machine/Driver/Scheduler.h"
#include "bmruntime/ptx_machine/Execution/Launch.h"

#include <map>
#include <set>

namespace ptx {

/// The arguments of a launch.
struct KernelCall {
  CUfunction function = nullptr;
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t sharedBytes = 0;
  std::vector<uint8_t> parameters;
};

/// The work of a stream operation or graph node. |action| is the work of tasks other than kernels; it may throw Fault.
struct Task {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  KernelCall kernel;
  std::function<void()> action;
};

/// The live objects of one kind, so that an invalid handle is rejected instead of dereferenced.
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
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes; ///< in topological order
};

struct CUgraphExec_st {
  CUcontext context = nullptr;
  std::vector<CUgraphNode> origin; ///< the graph's node of each task
  std::vector<std::shared_ptr<ptx::Task>> tasks;
  std::vector<std::vector<size_t>> dependencies;
  ptx::WorkRef last;
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  ptx::WorkRef last;
  /// The capture that this stream takes part in: its graph, and the nodes that the next node will depend on.
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
  std::atomic<int> lost{CUDA_SUCCESS}; ///< result of every call after a kernel has faulted
  std::set<CUstream> streams;          ///< streams created by calls
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
  std::map<uint64_t, CUcontext> owners; ///< device memory by address -> its context
  std::string lastFinding;
  uint64_t allocations = 0, launches = 0;
  std::atomic<uint64_t> executed{0};    ///< number of executed kernels
  std::atomic<uint64_t> nanoseconds{0}; ///< device clock (Options::Clock)
  Scheduler scheduler;                  ///< the last member, so that it is destroyed first
};

Driver &driver();

using Lock = std::lock_guard<std::recursive_mutex>;

/// The properties of the machine's device by compute capability.
struct DeviceModel {
  const char *name;
  int capability, sms, clockKhz, memoryClockKhz, busBits, l2Bytes, sharedPerSm, sharedPerBlock, threadsPerSm,
      blocksPerSm;
};
const DeviceModel &deviceModel(int capability);

/// Sets |context| to the calling thread's context and returns CUDA_SUCCESS, or returns the error to report.
CUresult currentContext(CUcontext &context);
/// Returns CUDA_SUCCESS if the stream belongs to |context|. Replaces null and the special handles by their streams.
CUresult findStream(CUcontext context, CUstream &stream);
/// Adds |task| to the stream, or to the graph that the stream captures.
CUresult enqueue(CUstream stream, Task task, WorkRef *work = nullptr);
/// Submits one task with explicit dependencies. Tasks of a lost context are not executed.
WorkRef submit(CUcontext context, const std::vector<WorkRef> &dependencies, std::shared_ptr<Task> task);
/// Returns the work that an operation of |stream| must wait for.
std::vector<WorkRef> dependenciesOf(CUstream stream);
/// Returns an error for a call that is not allowed while a stream captures (for captures of other threads, only in mode
/// GLOBAL), and invalidates that capture, as the driver does.
CUresult rejectInCapture(CUcontext context);
/// Waits without holding the lock and returns the status of the context.
CUresult finish(CUcontext context, const WorkRef &work);
CUresult finishAll(CUcontext context);
CUresult statusOf(CUcontext context);
/// Checks the arguments of cuLaunchKernel and fills in |call|.
CUresult makeCall(CUfunction function, const uint32_t *grid, const uint32_t *block, uint32_t sharedBytes,
                  void **parameters, void **extra, KernelCall &call);
void runKernel(CUcontext context, const KernelCall &call);
void destroyContext(CUcontext context);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_DRIVER_DRIVER_H
