// SPDX-License-Identifier: Apache-2.0
//===- StageContext.h - Execution context of a stage ----------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_STAGECONTEXT_H
#define TESSERA_BMRUNTIME_SRC_CORE_STAGECONTEXT_H

#include "ContextResources.h"
#include "ExecutionPlan.h"
#include "Memory.h"
#include "Mirrors.h"
#include "Profile.h"
#include "Sizes.h"
#include "Status.h"
#include "TaskRunner.h"

namespace bmrt::core {

/// An input or output and the place of its bytes.
struct Port {
  uint32_t slot = 0;
  const bmodel::TensorDef *def = nullptr;
  bool isInput = false;
  char *bound = nullptr;   ///< the caller's memory, if any
  uint64_t boundBytes = 0; ///< size of |bound|
  bool ownsPlace = false;  ///< the slot lives in the caller's memory; false for aliases of other tensors
  uint32_t alignment = 1;  ///< alignment that |bound| needs to be used in place
  bool isOnChip = false;   ///< |bound| is in the memory of the chip that the port is copied to or from
  int32_t twin = -1;       ///< the chip's tensor that then uses |bound| directly, without a copy; -1: none
  bool hasOwn = false;
  Buffer own;

  /// Returns true if the slot uses |bound| directly.
  bool isUsedInPlace() const;
};

/// A thread that executes steps: the caller's thread, or a thread of the runtime for a chip.
struct Lane {
  Lane(uint32_t agent, bool isCaller) : agent(agent), isCaller(isCaller) {}

  uint32_t agent;                ///< the agent of the current task, for the trace
  bool isCaller;                 ///< poll functions may be called only on the caller's thread
  uint32_t pending = kHostAgent; ///< the chip queue with unfinished work; kHostAgent: none
};

/// Plan, inputs, outputs and state of one stage. One stage of a context runs at a time.
class StageContext final : public TaskExecutor, public ChipTensors {
public:
  explicit StageContext(ContextResources &resources) : resources(resources) {}

  bmrt_code_t create(const StageProgram &program, bmrt_status_t *status);
  /// Makes this the current stage: takes over the context's current workspaces and invalidates addresses.
  void enter();
  bmrt_code_t enableProfile(bool on, bmrt_status_t *status) {
    return profile.enable(on, plan.getSteps().size(), status);
  }

  /// Sets all known shapes, or none of them. Unbinds buffers that were bound for other sizes.
  bmrt_code_t setInputShapes(const InputShapes &shapes, bmrt_status_t *status);
  bmrt_code_t bind(Port &port, void *data, uint64_t bytes, bmrt_status_t *status);
  /// Binds memory of the chip that the port is copied to or from (ChipPorts.cpp).
  bmrt_code_t bindOnChip(Port &port, void *data, uint64_t bytes, bmrt_status_t *status);
  /// Returns that chip; null for a port that cannot be in a chip's memory.
  const Device *chipOfPort(const Port &port) const;
  bmrt_code_t ensureOwn(Port &port, bmrt_status_t *status);
  /// Returns the slots of the states, without views of states.
  const Array<uint32_t> &getStateSlots() const { return stateSlots; }
  bmrt_code_t resetState(bmrt_status_t *status);
  /// Returns how |slot|, the slot of a state, grows.
  bmrt_state_growth_t growthOf(uint32_t slot) const;
  /// Sets the length of a growing state, and of all that have the same length, to a length up to its capacity. Shortens
  /// it, or appends zeros.
  bmrt_code_t setStateLength(uint32_t slot, int64_t length, bmrt_status_t *status);
  uint64_t savedStateBytes() const;
  /// Returns the bytes of a state that are in use.
  uint64_t usedBytesOf(uint32_t slot) const;
  /// Writes savedStateBytes() bytes.
  bmrt_code_t saveState(char *out, bmrt_status_t *status);
  /// Sets all states, or none if the bytes are not valid.
  bmrt_code_t loadState(const char *saved, uint64_t bytes, bmrt_status_t *status);
  bmrt_code_t run(bmrt_status_t *status);
  /// Returns true if a run consists only of commands of one asynchronous chip, and no hook or profile observes its
  /// steps.
  bool isEnqueued() const;
  /// Submits the commands of such a run; finish() waits for them.
  bmrt_code_t enqueue(bmrt_status_t *status);
  bmrt_code_t finish(bmrt_status_t *status);
  bool isFinished() const;
  bmrt_code_t runSteps(uint32_t begin, uint32_t end, bmrt_status_t *status);
  bmrt_code_t runTask(uint32_t step, uint32_t agent, bool isCaller, bmrt_status_t *status) override;

  /// Returns the bytes of tensor |slot| after a run or in a hook. With |isKept|, the caller may change them, and later
  /// steps see the changes.
  bmrt_code_t look(uint32_t slot, bool isKept, void **out, bmrt_status_t *status);
  const bmodel::TensorDef &tensor(uint32_t slot) const { return *stage->tensors()->Get(slot); }
  uint32_t tensorCount() const override { return uint32_t(data.size()); }
  uint64_t largestBytes(uint32_t slot) const override { return tensor(slot).bytes(); }
  bmrt_code_t fetchTensor(uint32_t slot, char *bytes, bmrt_status_t *status) override;
  bmrt_code_t storeTensor(uint32_t slot, const char *bytes, bmrt_status_t *status) override;
  const void *outputAddress(const Port &output) const { return output.bound ? output.bound : data[output.slot]; }

  const StageProgram *program = nullptr;
  Array<Port> inputs, outputs;
  Sizes sizes;
  ExecutionPlan plan;
  Profile profile;

private:
  bmrt_code_t makePorts(bmrt_status_t *status);
  bmrt_code_t allocateState(bmrt_status_t *status);
  bmrt_code_t resetChipState(uint32_t slot, bmrt_status_t *status);
  bmrt_code_t transferStates(char *bytes, bool toBytes, bmrt_status_t *status);
  /// Consecutive indices of a growing state, or all of another: |count| runs of |bytes| bytes, |stride| bytes apart.
  struct Extent {
    uint64_t offset, count, bytes, stride;
  };
  Extent extentOf(uint32_t slot, int64_t from, int64_t to) const;
  Extent usedExtentOf(uint32_t slot) const;
  uint64_t bytesForLengths(const int64_t *saved) const;
  void clearState(uint32_t slot, int64_t from, int64_t to);
  void unbindChanged();
  bmrt_code_t checkOutputs(bmrt_status_t *status);
  const char *fileBytes(uint32_t constant) const;
  uint32_t findOnlyAgent() const;
  bmrt_code_t beginRun(bmrt_status_t *status);
  bmrt_code_t resolveAddresses(bmrt_status_t *status);
  void placeTensors();
  void copyInputs();
  void copyOutputs();

  // The interpreter (Interpreter.cpp).
  bmrt_code_t runAndWait(Lane &lane, uint32_t begin, uint32_t end, bmrt_status_t *status);
  bmrt_code_t drain(Lane &lane, bmrt_status_t *status);
  bmrt_code_t runSubnet(Lane &lane, uint32_t subnet, bmrt_status_t *status);
  bmrt_code_t runRange(Lane &lane, uint32_t begin, uint32_t end, bmrt_status_t *status);
  bmrt_code_t endWatchedStep(Lane &lane, uint32_t step, uint64_t start, bmrt_status_t *status);
  bmrt_code_t runStep(Lane &lane, const Step &step, bmrt_status_t *status);
  bmrt_code_t runLaunch(const Step &step, bmrt_status_t *status);
  bmrt_code_t checkStepDims(const Step &step, int64_t tiles, bmrt_status_t *status) const;
  bmrt_code_t readDim(uint32_t slot, int64_t &value, bmrt_status_t *status) const;
  bmrt_code_t runTimed(const Step &step, const bmrt_stream_t &call, bmrt_status_t *status);
  bmrt_code_t runStream(Lane &lane, const Step &step, bmrt_status_t *status);
  bmrt_code_t enqueueLaunch(Lane &lane, const Step &step, bmrt_status_t *status);
  bmrt_code_t copy(Lane &lane, const Step &step, bmrt_status_t *status);
  bmrt_code_t runLoop(Lane &lane, const bmodel::LoopDef &loop, bmrt_status_t *status);
  bmrt_code_t evalDim(const bmodel::EvalDimDef &def, bmrt_status_t *status);

  ContextResources &resources;
  const bmodel::StageDef *stage = nullptr;
  Array<char *> workspaceData;
  Array<uint64_t> workspaceUsed; ///< by memory: the host's first, then by chip
  Buffer state;
  Array<uint32_t> stateSlots;
  Array<uint32_t> lengthSlots;    ///< dim slots that are lengths of states
  Array<DeviceBuffer> chipStates; ///< by chip
  Array<char *> data;             ///< address by tensor slot, in the tensor's memory
  Array<bool> isOnChip;           ///< by slot: host tensors that the caller provides in a chip's memory
  Mirrors mirrors;
  Lane enqueued{kHostAgent, /*isCaller=*/true}; ///< for runs that were submitted to a chip by enqueue()
  uint32_t onlyAgent = kHostAgent;              ///< the asynchronous chip that executes all steps, if any
  bool addressesCurrent = false;
  bool stateIsFresh = true; ///< not written since it was allocated or reset
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_STAGECONTEXT_H
