// SPDX-License-Identifier: Apache-2.0
//===- Plan.h - A stage's steps, resolved for one context -----------------===//
#ifndef BMRT_CORE_PLAN_H
#define BMRT_CORE_PLAN_H

#include "Memory.h"
#include "Model.h"
#include "Status.h"

#include <cstdint>

namespace bmrt::core {

/// One step. Launches carry all a run needs; the rest is read from the definition.
struct Step {
  bmodel::StepOp kind = bmodel::StepOp::NONE;
  const bmodel::StepDef *def = nullptr;
  const bmodel::SubnetDef *subnet = nullptr;
  // Launch only.
  bm_kernel_fn kernel = nullptr;
  void **args = nullptr;
  int64_t tiles = 0;
  int64_t grain = 1;
  int64_t *dimValues = nullptr; ///< behind the last argument, if the launch takes dims
  // Streams only.
  const Stream *stream = nullptr;
  uint32_t subnetIndex = 0;
};

/// The steps of all subnets of a stage, with their argument pointers.
class Plan {
public:
  /// Resolves kernels and reserves argument arrays for runs on |threads| threads.
  bmrt_code_t build(const StageProgram &program, uint32_t threads, bmrt_status_t *status);

  /// Fills every launch's argument array from |data|, the addresses by tensor slot.
  void bind(char *const *data);

  /// The steps of one subnet: [begin, end) of steps().
  uint32_t begin(uint32_t subnet) const { return firstStep[subnet]; }
  uint32_t end(uint32_t subnet) const { return firstStep[subnet + 1]; }
  const Array<Step> &getSteps() const { return steps; }

  /// Largest scratch any launch asks for.
  uint64_t getScratchBytes() const { return scratchBytes; }

private:
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
