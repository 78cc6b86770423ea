// SPDX-License-Identifier: Apache-2.0
//===- Context.h - One place to run a net ---------------------------------===//
#ifndef BMRT_CORE_CONTEXT_H
#define BMRT_CORE_CONTEXT_H

#include "AsyncRunner.h"
#include "Memory.h"
#include "Model.h"
#include "StageContext.h"
#include "Status.h"
#include "TaskRunner.h"
#include "ThreadPool.h"

/// See bmrt.h. Used by one thread at a time. Of its stages, made when they are first asked for, one runs at a time:
/// they share threads, workspaces, scratch and queues.
struct bmrt_context_t {
  bmrt_context_t();
  ~bmrt_context_t();

  bmrt_code_t create(bmrt_model_t *model, const bmrt_context_options_t &options, bmrt_status_t *status);

  /// The stage whose functions are meant now.
  bmrt::core::StageContext &stage() const { return *current; }

  bmrt_code_t setStage(uint32_t index, bmrt_status_t *status);
  bmrt_code_t setInputShape(uint32_t input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  bmrt_code_t setInputShapes(const int64_t *const *shapes, const uint32_t *ranks, bmrt_status_t *status);
  /// Of the queues of all chips that the current stage uses, and of those that come later.
  bmrt_code_t setStream(void *newStream, bmrt_status_t *status);
  bmrt_code_t setProfiling(bool enabled, bmrt_status_t *status);

  // For its stages.
  bmrt_model_t &getModel() const { return *model; }
  /// Has the queues, and room for the workspaces and the scratch, of a stage.
  bmrt_code_t reserveFor(const bmrt::core::StageProgram &stage, uint64_t scratchBytes, bmrt_status_t *status);
  /// The queue of a chip that the stage uses, by its agent (Plan.h).
  bmrt::core::Queue &queueOf(uint32_t agent) { return queues[agent - 1]; }
  /// Where the workspaces in a memory begin.
  char *workspaceOf(int32_t memory) const {
    return memory == bmodel::kHostMemory ? workspace : chipWorkspaces[size_t(memory)].address();
  }
  /// How back ends ask whether the run is to end, from the caller's thread or from another.
  const bmrt_interrupt_t *interruptFor(bool isCaller) const { return isCaller ? &callersInterrupt : &othersInterrupt; }
  bmrt::core::ThreadPool pool;
  bmrt::core::Interrupt interrupt;
  bmrt::core::TaskRunner tasks;

  /// Starts a run of the current stage and waits for it; see bmrt_context_launch.
  bmrt_code_t launch(bmrt_status_t *status);
  bmrt_code_t wait(bmrt_status_t *status);
  bool isDone() { return isLaunched ? current->isFinished() : async.isDone(); }
  /// Whether a launched run has not been waited for.
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
  bool followsShapes = false; ///< the stage was not named
  bool isProfiling = false;
  bool isLaunched = false; ///< by this thread alone: the chip is at work
  bmrt::core::AsyncRunner async;
  bmrt::core::StageContext *current = nullptr;
  bmrt::core::Array<bmrt::core::StageContext *> stages; ///< by their number in the model; null until asked for
  bmrt::core::Array<bmrt::core::Queue> queues;          ///< by chip; likewise
  bmrt::core::Array<bmrt::core::DeviceBuffer> chipWorkspaces;
  bmrt::core::Array<char> chipName;
  void *stream = nullptr; ///< the caller's, for the chips' work
  const bmrt_interrupt_t callersInterrupt, othersInterrupt;
  char *workspace = nullptr;
  bmrt::core::Buffer ownWorkspace;
  uint64_t workspaceBytes = 0;
  bool ownsWorkspace = true;
};

#endif // BMRT_CORE_CONTEXT_H
