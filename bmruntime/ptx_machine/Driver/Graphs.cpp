//===- Graphs.cpp - Stream capture and graphs -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"

#include <algorithm>

using namespace ptx;

namespace {

CUresult findBoth(CUcontext &context, CUstream &stream) {
  CUresult result = currentContext(context);
  return result == CUDA_SUCCESS ? findStream(context, stream) : result;
}

/// Returns true if |frontier| depends on all nodes, i.e. the work that other streams captured has been joined.
bool isJoined(const CUgraph_st &graph, const std::vector<CUgraphNode> &frontier) {
  std::set<CUgraphNode> reached;
  std::vector<CUgraphNode> open = frontier;
  while (!open.empty()) {
    CUgraphNode node = open.back();
    open.pop_back();
    if (reached.insert(node).second) {
      open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
    }
  }
  return reached.size() == graph.nodes.size();
}

} // namespace

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (stream == context->legacy.get()) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream->capture) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  stream->capture = std::make_shared<CUgraph_st>();
  stream->frontier.clear();
  stream->isOrigin = true;
  stream->isInvalidated = false;
  stream->mode = mode;
  stream->capturing = std::this_thread::get_id();
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!stream->capture) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  if (!stream->isOrigin) {
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  std::shared_ptr<CUgraph_st> captured = stream->capture;
  std::vector<CUgraphNode> frontier = stream->frontier;
  bool isInvalidated = false;
  for (CUstream each : context->streams) {
    if (each->capture == captured) {
      isInvalidated = isInvalidated || each->isInvalidated;
      each->capture = nullptr;
      each->frontier.clear();
      each->isOrigin = each->isInvalidated = false;
    }
  }
  for (auto &each : driver().events) {
    if (each.second->capture == captured) {
      each.second->nodes.clear();
    }
  }
  *graph = nullptr;
  if (isInvalidated) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (!isJoined(*captured, frontier)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  auto made = std::make_unique<CUgraph_st>();
  made->nodes = std::move(captured->nodes);
  *graph = driver().graphs.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result == CUDA_SUCCESS) {
    *status = !stream->capture        ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->isInvalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  return result;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Lock lock(driver().mutex);
  if (!driver().graphs.has(graph)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().graphs.remove(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  Lock lock(driver().mutex);
  if (!driver().graphs.has(graph) || !count) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!nodes) {
    *count = graph->nodes.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) {
    nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
  }
  *count = std::min(*count, graph->nodes.size());
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  *type = node->task.type;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters) {
  if (node->task.type != CU_GRAPH_NODE_TYPE_KERNEL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const KernelCall &call = node->task.kernel;
  *parameters = {call.function, call.grid[0],     call.grid[1], call.grid[2], call.block[0], call.block[1],
                 call.block[2], call.sharedBytes, nullptr,      nullptr,      nullptr,       nullptr};
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  if (!driver().graphs.has(graph)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto made = std::make_unique<CUgraphExec_st>();
  made->context = context;
  std::map<CUgraphNode, size_t> indices;
  for (auto &node : graph->nodes) {
    indices[node.get()] = made->tasks.size();
    made->origin.push_back(node.get());
    made->tasks.push_back(std::make_shared<Task>(node->task));
    made->dependencies.emplace_back();
    for (CUgraphNode each : node->dependencies) {
      made->dependencies.back().push_back(indices.at(each));
    }
  }
  *executable = driver().executables.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters) {
  Lock lock(driver().mutex);
  if (!driver().executables.has(executable)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto found = std::find(executable->origin.begin(), executable->origin.end(), node);
  if (found == executable->origin.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::shared_ptr<Task> &task = executable->tasks[size_t(found - executable->origin.begin())];
  if (task->type != CU_GRAPH_NODE_TYPE_KERNEL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUDA_KERNEL_NODE_PARAMS &p = *parameters;
  uint32_t grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ}, block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  // A new task, because launches in flight keep theirs.
  auto made = std::make_shared<Task>();
  made->type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUresult result = makeCall(p.func, grid, block, p.sharedMemBytes, p.kernelParams, p.extra, made->kernel);
  if (result == CUDA_SUCCESS) {
    task = made;
  }
  return result;
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream) {
  Lock lock(driver().mutex);
  return driver().executables.has(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  Lock lock(driver().mutex);
  CUcontext context = nullptr;
  CUresult result = findBoth(context, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!driver().executables.has(executable) || executable->context != context) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture) {
    stream->isInvalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; // child graphs are not supported
  }
  std::vector<WorkRef> entry = dependenciesOf(stream), all;
  entry.push_back(executable->last); // a graph never runs concurrently with itself
  for (size_t i = 0; i < executable->tasks.size(); ++i) {
    const std::shared_ptr<Task> &task = executable->tasks[i];
    bool isKernel = task->type == CU_GRAPH_NODE_TYPE_KERNEL;
    if (isKernel && ++driver().launches == driver().options.failLaunch) {
      stream->last = submit(context, all, std::make_shared<Task>());
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (task->type == CU_GRAPH_NODE_TYPE_HOST) {
      driver().scheduler.startBackground();
    }
    std::vector<WorkRef> dependencies;
    for (size_t each : executable->dependencies[i]) {
      dependencies.push_back(all[each]);
    }
    all.push_back(submit(context, dependencies.empty() ? entry : dependencies, task));
  }
  all.insert(all.end(), entry.begin(), entry.end());
  executable->last = stream->last = submit(context, all, std::make_shared<Task>());
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  Lock lock(driver().mutex);
  if (!driver().executables.has(executable)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().executables.remove(executable);
  return CUDA_SUCCESS;
}
