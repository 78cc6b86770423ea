// SPDX-License-Identifier: Apache-2.0
//===- Context.h - One place to run a net ---------------------------------===//
#ifndef BMRT_CORE_CONTEXT_H
#define BMRT_CORE_CONTEXT_H

#include "AsyncRunner.h"
#include "Memory.h"
#include "Model.h"
#include "StageContext.h"
#include "Status.h"
#include "ThreadPool.h"

/// See bmrt.h. Used by one thread at a time. Of its stages, made when they are first asked for, one runs at a time:
/// they share threads, workspace, scratch and simulated chips.
struct bmrt_context_t {
  bmrt_context_t() = default;
  ~bmrt_context_t();

  bmrt_code_t create(bmrt_model_t *model, const bmrt_context_options_t &options, bmrt_status_t *status);

  /// The stage whose functions are meant now.
  bmrt::core::StageContext &stage() const { return *current; }

  bmrt_code_t setStage(uint32_t index, bmrt_status_t *status);
  bmrt_code_t setInputShape(uint32_t input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  bmrt_code_t setInputShapes(const int64_t *const *shapes, const uint32_t *ranks, bmrt_status_t *status);
  bmrt_code_t setProfiling(bool enabled, bmrt_status_t *status);

  // For its stages.
  const bmrt_model_t &getModel() const { return *model; }
  /// Has room for the workspaces and the scratch of a stage.
  bmrt_code_t reserveFor(const bmodel::StageDef &stage, uint64_t scratchBytes, bmrt_status_t *status);
  /// The chip that runs a subnet's streams.
  bmrt_code_t findRunner(const bmrt::core::SubnetProgram &subnet, bmrt::core::StreamRunner **out,
                         bmrt_status_t *status);
  bmrt::core::ThreadPool pool;
  bmrt::core::Interrupt interrupt;
  char *workspace = nullptr;

  bmrt::core::AsyncRunner async;
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
  bmrt::core::StageContext *current = nullptr;
  bmrt::core::Array<bmrt::core::StageContext *> stages;  ///< by their number in the model; null until asked for
  bmrt::core::Array<bmrt::core::StreamRunner *> runners; ///< by chip; likewise
  bmrt::core::Array<char> chipName;
  bmrt::core::Buffer ownWorkspace;
  uint64_t workspaceBytes = 0;
  bool ownsWorkspace = true;
};

#endif // BMRT_CORE_CONTEXT_H
