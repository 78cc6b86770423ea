// SPDX-License-Identifier: Apache-2.0
//===- StageContext.h - One place to run a stage --------------------------===//
#ifndef BMRT_CORE_STAGECONTEXT_H
#define BMRT_CORE_STAGECONTEXT_H

#include "Memory.h"
#include "Model.h"
#include "Plan.h"
#include "Profile.h"
#include "Status.h"

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

/// One shape for each input; null where it is not known.
struct InputShapes {
  const int64_t *const *dims;
  const uint32_t *ranks;
};

/// Plan, inputs, outputs and state of one stage. What the stages of a context share, of which one runs at a time, is
/// the context's.
class StageContext {
public:
  explicit StageContext(bmrt_context_t &context) : context(context) {}

  bmrt_code_t create(const StageProgram &program, bmrt_status_t *status);
  /// Uses the context's workspace as it is now; what was known of addresses is void.
  void enter();
  bmrt_code_t enableProfile(bool on, bmrt_status_t *status) {
    return profile.enable(on, plan.getSteps().size(), status);
  }

  bmrt_code_t setInputShape(Port &input, const int64_t *shape, uint32_t rank, bmrt_status_t *status);
  /// All of those that are known, or none.
  bmrt_code_t setInputShapes(const InputShapes &shapes, bmrt_status_t *status);
  bmrt_code_t bind(Port &port, void *data, uint64_t bytes, uint64_t expected, bmrt_status_t *status);
  bmrt_code_t ensureOwn(Port &port, bmrt_status_t *status);
  bmrt_code_t resetState();
  bmrt_code_t run(bmrt_status_t *status);
  bmrt_code_t runSteps(uint32_t begin, uint32_t end, bmrt_status_t *status);

  /// Where tensor |slot| is; current after a run.
  const void *address(uint32_t slot) const { return data[slot]; }
  const void *outputAddress(const Port &output) const { return output.bound ? output.bound : data[output.slot]; }

  const StageProgram *program = nullptr;
  Array<Port> inputs, outputs;
  Array<int64_t> dims; ///< values of the dim slots, -1 = unknown
  Plan plan;
  Profile profile;

private:
  bmrt_code_t makePorts(bmrt_status_t *status);
  bmrt_code_t makeRunners(bmrt_status_t *status);
  bmrt_code_t resolveAddresses(bmrt_status_t *status);
  void placeTensors();
  bmrt_code_t copyInputs(bmrt_status_t *status);
  void copyOutputs();

  // The interpreter (Interpreter.cpp).
  bmrt_code_t runSubnet(uint32_t subnet, bmrt_status_t *status);
  bmrt_code_t runRange(uint32_t begin, uint32_t end, bmrt_status_t *status);
  bmrt_code_t runStep(const Step &step, bmrt_status_t *status);
  bmrt_code_t runLaunch(const Step &step, bmrt_status_t *status);
  bmrt_code_t readDim(uint32_t slot, int64_t &value, bmrt_status_t *status) const;
  bmrt_code_t runStream(const Step &step, bmrt_status_t *status);
  bmrt_code_t runLoop(const bmodel::LoopDef &loop, bmrt_status_t *status);
  bmrt_code_t evalDim(const bmodel::EvalDimDef &def, bmrt_status_t *status);

  bmrt_context_t &context;
  const bmodel::StageDef *stage = nullptr;
  Array<char *> workspaceData;
  Buffer state;
  Array<char *> data;            ///< address by tensor slot
  Array<StreamRunner *> runners; ///< by subnet, the context's; null: it has no streams
  Array<char *> streamIo;        ///< what a stream reads, then writes, while it runs
  bool addressesCurrent = false;
  bool stateIsFresh = true; ///< nothing has written to it since it was allocated or reset
};

/// Whether input |input| of |stage| takes |shape|; if not, the status says what it takes.
bmrt_code_t checkInputShape(const bmodel::StageDef &stage, const bmodel::TensorDef &input, const int64_t *shape,
                            uint32_t rank, bmrt_status_t *status);

/// The same of all inputs whose shapes are known; dims of one symbol must be equal.
bmrt_code_t checkInputShapes(const bmodel::StageDef &stage, const InputShapes &shapes, bmrt_status_t *status);

/// Bytes of a context's memory that the workspaces of |stage| take; UINT64_MAX where that is too much to count.
uint64_t workspaceBytes(const bmodel::StageDef &stage);

} // namespace bmrt::core

#endif // BMRT_CORE_STAGECONTEXT_H
