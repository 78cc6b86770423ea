// SPDX-License-Identifier: Apache-2.0
//===- Context.h - Execution context of a net -----------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H
#define TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H

#include "AsyncRunner.h"
#include "Memory.h"
#include "Model.h"
#include "StageContext.h"
#include "Status.h"
#include "TaskRunner.h"
#include "ThreadPool.h"

/// See bmrt.h. Used by one thread at a time. Its stages are created on first use. One stage runs at a time, so they
/// share threads, workspaces, scratch memory and queues.
struct bmrt_context_t {
  bmrt_context_t();
  ~bmrt_context_t();

  bmrt_code_t create(bmrt_model_t *model, const bmrt_context_options_t &options, bmrt_status_t *status);

  /// Returns the current stage.
  bmrt::core::StageContext &stage() const { return *current; }

  bmrt_code_t setStage(uint32_t index, bmrt_status_t *status);
  bmrt_code_t setInputShape(uint32_t input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  bmrt_code_t setInputShapes(const int64_t *const *shapes, const uint32_t *ranks, bmrt_status_t *status);
  /// Sets the stream of the queues of all chips that the current stage uses, and of queues opened later.
  bmrt_code_t setStream(void *newStream, bmrt_status_t *status);
  bmrt_code_t setProfiling(bool enabled, bmrt_status_t *status);

  // Interface for the stages.
  bmrt_model_t &getModel() const { return *model; }
  /// Opens the queues and allocates the workspaces and scratch memory that a stage needs.
  bmrt_code_t reserveFor(const bmrt::core::StageProgram &stage, uint64_t scratchBytes, bmrt_status_t *status);
  /// Returns the queue of a chip that the stage uses; |agent| as in ExecutionPlan.h.
  bmrt::core::Queue &queueOf(uint32_t agent) { return queues[agent - 1]; }
  /// Returns the start of the workspaces in a memory.
  char *workspaceOf(int32_t memory) const {
    return memory == bmodel::kHostMemory ? workspace : chipWorkspaces[size_t(memory)].address();
  }
  /// Returns the cancellation query for back ends, for the caller's thread or for another thread.
  const bmrt_interrupt_t *interruptFor(bool isCaller) const { return isCaller ? &callersInterrupt : &othersInterrupt; }
  bmrt::core::ThreadPool pool;
  bmrt::core::Interrupt interrupt;
  bmrt::core::TaskRunner tasks;

  /// Start a run of the current stage and wait for it; see bmrt_context_launch.
  bmrt_code_t launch(bmrt_status_t *status);
  bmrt_code_t wait(bmrt_status_t *status);
  bool isDone() { return isLaunched ? current->isFinished() : async.isDone(); }
  /// Returns true if a launched run has not been waited for.
  bool isPending() const { return isLaunched || async.isPending(); }

  bmrt_step_hook_t hook = nullptr;
  void *hookUser = nullptr;

private:
  bmrt_code_t enter(const bmrt::core::StageProgram &program, bmrt_status_t *status);
  bmrt_code_t enterFitting(const bmrt::core::InputShapes &shapes, bmrt_status_t *status);
  bmrt_code_t failFitting(const bmrt::core::InputShapes &shapes, bmrt_status_t *status) const;
  bool mayEnter(const bmrt::core::StageProgram &program) const;

  bmrt_model_t *model = nullptr;
  const bmodel::NetDef *net = nullptr;
  const char *chip = nullptr; ///< as in bmrt_context_options_t
  bool followsShapes = false; ///< shapes select the stage; false if the caller has named it
  bool isProfiling = false;
  bool isLaunched = false; ///< a run launched by this thread is in progress on a chip
  bmrt::core::AsyncRunner async;
  bmrt::core::StageContext *current = nullptr;
  bmrt::core::Array<bmrt::core::StageContext *> stages; ///< by index in the model; null until first use
  bmrt::core::Array<bmrt::core::Queue> queues;          ///< by chip; not open until first use
  bmrt::core::Array<bmrt::core::DeviceBuffer> chipWorkspaces;
  bmrt::core::Array<char> chipName;
  void *stream = nullptr; ///< stream of the caller for the chips' work
  const bmrt_interrupt_t callersInterrupt, othersInterrupt;
  char *workspace = nullptr;
  bmrt::core::Buffer ownWorkspace;
  uint64_t workspaceBytes = 0;
  bool ownsWorkspace = true;
};

#endif // TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H
