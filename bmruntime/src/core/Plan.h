// SPDX-License-Identifier: Apache-2.0
//===- Plan.h - A stage's steps, resolved for one context -----------------===//
#ifndef BMRT_CORE_PLAN_H
#define BMRT_CORE_PLAN_H

#include "Memory.h"
#include "Model.h"
#include "Status.h"

#include <cstdint>

namespace bmrt::core {

/// Who carries a step out: the host, a queue (a chip's index + 1), or nobody: it touches no tensor itself.
enum Agent : uint32_t { kHostAgent = 0, kNoAgent = UINT32_MAX };

/// One step. Launches and streams carry all a run needs; the rest is read from the definition.
struct Step {
  bmodel::StepOp kind = bmodel::StepOp::NONE;
  uint32_t agent = kNoAgent;
  const bmodel::StepDef *def = nullptr;
  const SubnetProgram *subnet = nullptr;
  // Launches and streams only.
  void *kernel = nullptr;
  void **args = nullptr; ///< addresses of the tensors
  int64_t tiles = 0;
  int64_t grain = 1;
  int64_t *dimValues = nullptr; ///< a launch on the host has it behind the last argument; null if it takes no dims
  const Stream *stream = nullptr;
};

/// The chip that copies: the one with memory of its own that is read or written, or kHostMemory.
int32_t chipOfCopy(const bmodel::StageDef &stage, const bmodel::CopyDef &copy);

/// The steps of all subnets of a stage, with their argument pointers.
class Plan {
public:
  /// Resolves kernels and reserves argument arrays for runs on |threads| threads.
  bmrt_code_t build(const StageProgram &program, uint32_t threads, bmrt_status_t *status);

  /// Fills the argument arrays of launches and streams from |data|, the addresses by tensor slot.
  void bind(char *const *data);

  /// The steps of one subnet: [begin, end) of steps().
  uint32_t begin(uint32_t subnet) const { return firstStep[subnet]; }
  uint32_t end(uint32_t subnet) const { return firstStep[subnet + 1]; }
  const Array<Step> &getSteps() const { return steps; }

  /// Largest scratch any launch asks for.
  uint64_t getScratchBytes() const { return scratchBytes; }

private:
  bmrt_code_t allocate(const StageProgram &program, bmrt_status_t *status);

  const bmodel::StageDef *stage = nullptr;
  Array<Step> steps;
  Array<uint32_t> firstStep;
  Array<void *> args;
  Array<int64_t> dimValues;
  uint64_t scratchBytes = 0;
};

/// Tiles a thread claims at once: |requested| if the compiler said so, else small enough that
/// threads of unequal speed end together.
int64_t chooseGrain(int64_t requested, int64_t tiles, uint32_t threads);

} // namespace bmrt::core

#endif // BMRT_CORE_PLAN_H
