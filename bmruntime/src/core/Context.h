// SPDX-License-Identifier: Apache-2.0
//===- Context.h - One place to run a net ---------------------------------===//
#ifndef BMRT_CORE_CONTEXT_H
#define BMRT_CORE_CONTEXT_H

#include "AsyncRunner.h"
#include "Memory.h"
#include "Model.h"
#include "Plan.h"
#include "Profile.h"
#include "Status.h"
#include "ThreadPool.h"

namespace bmrt::core {

/// An input or output and where its bytes are.
struct Port {
  uint32_t slot = 0;
  const bmodel::TensorDef *def = nullptr;
  char *bound = nullptr;  ///< the caller's memory, if any
  bool ownsPlace = false; ///< the slot lives in the caller's memory, not elsewhere (an alias)
  bool hasOwn = false;
  Buffer own;
};

} // namespace bmrt::core

/// See bmrt.h. Used by one thread at a time.
struct bmrt_context_t {
  bmrt_context_t() = default;
  ~bmrt_context_t();

  bmrt_code_t create(bmrt_model_t *model, const bmrt_context_options_t &options, bmrt_status_t *status);

  bmrt_code_t setInputShape(bmrt::core::Port &input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  bmrt_code_t bind(bmrt::core::Port &port, void *data, uint64_t bytes, uint64_t expected, bmrt_status_t *status);
  bmrt_code_t ensureOwn(bmrt::core::Port &port, bmrt_status_t *status);
  bmrt_code_t resetState();
  bmrt_code_t run(bmrt_status_t *status);
  bmrt_code_t runSteps(uint32_t begin, uint32_t end, bmrt_status_t *status);

  /// Where tensor |slot| is; current after a run.
  const void *address(uint32_t slot) const { return data[slot]; }
  const void *outputAddress(const bmrt::core::Port &output) const {
    return output.bound ? output.bound : data[output.slot];
  }

  const bmrt::core::StageProgram *program = nullptr;
  bmrt::core::Array<bmrt::core::Port> inputs, outputs;
  bmrt::core::Array<int64_t> dims; ///< values of the dim slots, -1 = unknown
  bmrt::core::Plan plan;
  bmrt::core::Profile profile;
  bmrt::core::AsyncRunner async;
  bmrt_step_hook_t hook = nullptr;
  void *hookUser = nullptr;

private:
  bmrt_code_t allocateWorkspaces(const bmrt_context_options_t &options, bmrt_status_t *status);
  bmrt_code_t makePorts(bmrt_status_t *status);
  bmrt_code_t makeRunners(bmrt_status_t *status);
  bmrt_code_t resolveAddresses(bmrt_status_t *status);
  void placeTensors();
  bmrt_code_t copyInputs(bmrt_status_t *status);
  void copyOutputs();

  // The interpreter (Interpreter.cpp).
  bmrt_code_t runSubnet(uint32_t subnet, uint32_t depth, bmrt_status_t *status);
  bmrt_code_t runRange(uint32_t begin, uint32_t end, uint32_t depth, bmrt_status_t *status);
  bmrt_code_t runStep(const bmrt::core::Step &step, uint32_t depth, bmrt_status_t *status);
  void runLaunch(const bmrt::core::Step &step);
  bmrt_code_t runStream(const bmrt::core::Step &step, bmrt_status_t *status);
  bmrt_code_t runLoop(const bmodel::LoopDef &loop, uint32_t depth, bmrt_status_t *status);
  bmrt_code_t evalDim(const bmodel::EvalDimDef &def, bmrt_status_t *status);

  bmrt_model_t *model = nullptr;
  const bmodel::StageDef *stage = nullptr;
  bmrt::core::ThreadPool pool;
  bmrt::core::Array<bmrt::core::Buffer> workspaces;
  bmrt::core::Array<char *> workspaceData;
  bmrt::core::Buffer state;
  bmrt::core::Array<char *> data;                        ///< address by tensor slot
  bmrt::core::Array<bmrt::core::StreamRunner *> runners; ///< by subnet; null: it has no streams
  bmrt::core::Array<char *> streamIo;                    ///< inputs, then outputs, while a stream runs
  bool addressesCurrent = false;
};

#endif // BMRT_CORE_CONTEXT_H
