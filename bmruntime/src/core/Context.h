// SPDX-License-Identifier: Apache-2.0
//===- Context.h - Execution context of a net -----------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H
#define TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H

#include "AsyncRunner.h"
#include "ContextResources.h"
#include "Memory.h"
#include "StageContext.h"
#include "Status.h"

/// See bmrt.h. Used by one thread at a time. Its stages are created on first use.
struct bmrt_context_t {
  bmrt_context_t() { resources.hook.context = this; }
  ~bmrt_context_t();

  bmrt_code_t create(bmrt_model_t *model, const bmrt_context_options_t &options, bmrt_status_t *status);

  /// Returns the current stage.
  bmrt::core::StageContext &stage() const { return *current; }

  bmrt_code_t setStage(uint32_t index, bmrt_status_t *status);
  bmrt_code_t setInputShape(uint32_t input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  bmrt_code_t setInputShapes(const int64_t *const *shapes, const uint32_t *ranks, bmrt_status_t *status);
  bmrt_code_t setProfiling(bool enabled, bmrt_status_t *status);

  /// Start a run of the current stage and wait for it; see bmrt_context_launch.
  bmrt_code_t launch(bmrt_status_t *status);
  bmrt_code_t wait(bmrt_status_t *status);
  bool isDone() { return isLaunched ? current->isFinished() : async.isDone(); }
  /// Returns true if a launched run has not been waited for.
  bool isPending() const { return isLaunched || async.isPending(); }

  bmrt::core::ContextResources resources;

private:
  /// Creates |stage| if it is null, and brings it up to date with the context's settings.
  bmrt_code_t prepare(const bmrt::core::StageProgram &program, bmrt::core::StageContext *&stage, bmrt_status_t *status);
  bmrt_code_t enter(const bmrt::core::StageProgram &program, bmrt_status_t *status);
  bmrt_code_t enterFitting(const bmrt::core::InputShapes &shapes, bmrt_status_t *status);
  bmrt_code_t failFitting(const bmrt::core::InputShapes &shapes, bmrt_status_t *status) const;
  int64_t largestSize(uint32_t input, uint32_t dim) const;
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
  bmrt::core::Array<char> chipName;
};

#endif // TESSERA_BMRUNTIME_SRC_CORE_CONTEXT_H
