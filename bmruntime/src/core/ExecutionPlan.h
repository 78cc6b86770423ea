// SPDX-License-Identifier: Apache-2.0
//===- ExecutionPlan.h - A stage's steps, resolved for one context --------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_EXECUTIONPLAN_H
#define TESSERA_BMRUNTIME_SRC_CORE_EXECUTIONPLAN_H

#include "Memory.h"
#include "StageProgram.h"
#include "Status.h"
#include "tessera_custom_op.h"

#include <cstdint>

namespace bmrt::core {

/// The executor of a step: the host, a queue (a chip's index + 1), or none for a step that accesses no tensor itself.
enum Agent : uint32_t { kHostAgent = 0, kNoAgent = UINT32_MAX };

/// One step. For launches and streams it contains everything that a run needs; other steps use their definition.
struct Step {
  bmodel::StepOp kind = bmodel::StepOp::NONE;
  uint32_t agent = kNoAgent;
  const bmodel::StepDef *def = nullptr;
  const SubnetProgram *subnet = nullptr;
  bool usesStepDims = false; ///< its sizes depend on dims that earlier steps set, so it is checked when it runs
  // Set only for launches and streams.
  void *kernel = nullptr;              ///< of a custom operator: its bmodel::CustomOp
  tessera_tensor_t *tensors = nullptr; ///< arguments of a custom operator; null for other launches
  void **args = nullptr;               ///< addresses of the tensors
  int64_t tiles = 0;
  int64_t grain = 1;
  int64_t *dimValues = nullptr; ///< passed to a host kernel after the last argument; null if the step has no dims
  const Stream *stream = nullptr;
  uint64_t *tensorBytes = nullptr; ///< of the tensors of a stream that takes dims; null for other streams
};

/// Returns the chip that performs a copy, i.e. the chip whose memory is read or written, or kHostMemory.
int32_t chipOfCopy(const bmodel::StageDef &stage, const bmodel::CopyDef &copy);

/// The steps of all subnets of a stage, with their argument pointers.
class ExecutionPlan {
public:
  /// Resolves kernels and allocates argument arrays for runs on |threads| threads.
  bmrt_code_t build(const StageProgram &program, uint32_t threads, bmrt_status_t *status);

  /// Fills the argument arrays of launches and streams from |data|, the addresses by tensor slot.
  void bind(char *const *data);

  /// The steps of one subnet: [begin, end) of getSteps().
  uint32_t begin(uint32_t subnet) const { return firstStep[subnet]; }
  uint32_t end(uint32_t subnet) const { return firstStep[subnet + 1]; }
  const Array<Step> &getSteps() const { return steps; }

  /// Returns the largest scratch size of any launch on the host.
  uint64_t getScratchBytes() const { return scratchBytes; }

private:
  bmrt_code_t allocate(const StageProgram &program, bmrt_status_t *status);

  const bmodel::StageDef *stage = nullptr;
  Array<Step> steps;
  Array<uint32_t> firstStep;
  Array<void *> args;
  Array<int64_t> dimValues;
  Array<uint64_t> tensorBytes;
  Array<tessera_tensor_t> customTensors;
  uint64_t scratchBytes = 0;
};

/// Returns the number of tiles that a thread claims at once: |requested| if the compiler chose one, otherwise a number
/// small enough that threads of unequal speed finish at about the same time.
int64_t chooseGrain(int64_t requested, int64_t tiles, uint32_t threads);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_EXECUTIONPLAN_H
