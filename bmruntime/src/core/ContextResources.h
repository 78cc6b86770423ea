// SPDX-License-Identifier: Apache-2.0
//===- ContextResources.h - Resources that the stages of a context share --===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CONTEXTRESOURCES_H
#define TESSERA_BMRUNTIME_SRC_CORE_CONTEXTRESOURCES_H

#include "Device.h"
#include "Interrupt.h"
#include "Memory.h"
#include "Model.h"
#include "Status.h"
#include "TaskRunner.h"
#include "ThreadPool.h"

namespace bmrt::core {

/// The caller's function that observes steps; see bmrt_context_set_step_hook.
struct StepHook {
  bmrt_step_hook_t function = nullptr;
  void *user = nullptr;
  bmrt_context_t *context = nullptr; ///< passed to the function
};

/// Threads, workspaces, scratch memory and queues. The stages of a context share them, because one stage runs at a
/// time.
class ContextResources {
public:
  ContextResources();
  ~ContextResources();

  /// Uses |newModel| until destruction. The options must be valid.
  bmrt_code_t create(bmrt_model_t &newModel, const bmrt_context_options_t &options, uint32_t threads,
                     bmrt_status_t *status);

  bmrt_model_t &getModel() const { return *model; }
  /// Opens the queues and allocates the workspaces and scratch memory that a stage needs. Workspaces may move, also if
  /// it fails.
  bmrt_code_t reserveFor(const StageProgram &stage, uint64_t scratchBytes, bmrt_status_t *status);
  /// Sets the stream of all open queues, and of queues opened later.
  bmrt_code_t setStream(void *newStream, bmrt_status_t *status);
  /// Returns the queue of a chip that a stage uses; |agent| as in ExecutionPlan.h.
  Queue &queueOf(uint32_t agent) { return queues[agent - 1]; }
  /// Returns the start of the workspaces in a memory.
  char *workspaceOf(int32_t memory) const {
    return memory == bmodel::kHostMemory ? workspace : chipWorkspaces[size_t(memory)].address();
  }
  /// Returns the cancellation query for back ends, for the caller's thread or for another thread.
  const bmrt_interrupt_t *interruptFor(bool isCaller) const { return isCaller ? &callersInterrupt : &othersInterrupt; }

  ThreadPool pool;
  Interrupt interrupt;
  TaskRunner tasks;
  StepHook hook;

private:
  bmrt_model_t *model = nullptr;
  Array<Queue> queues; ///< by chip; not open until first use
  Array<DeviceBuffer> chipWorkspaces;
  void *stream = nullptr; ///< stream of the caller for the chips' work
  const bmrt_interrupt_t callersInterrupt, othersInterrupt;
  char *workspace = nullptr;
  Buffer ownWorkspace;
  uint64_t workspaceBytes = 0;
  bool ownsWorkspace = true;
};

/// Returns |bytes|, rounded up to a multiple of BMRT_ALIGNMENT.
inline uint64_t alignedBytes(uint64_t bytes) { return (bytes + BMRT_ALIGNMENT - 1) & ~uint64_t(BMRT_ALIGNMENT - 1); }

/// Returns the bytes that the workspaces of |stage| take in |memory|, the host's or a chip's; UINT64_MAX on overflow.
uint64_t workspaceBytes(const bmodel::StageDef &stage, int32_t memory = bmodel::kHostMemory);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_CONTEXTRESOURCES_H
