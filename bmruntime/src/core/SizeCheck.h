// SPDX-License-Identifier: Apache-2.0
//===- SizeCheck.h - Checks a plan for one vector of sizes ----------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H
#define TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H

#include "StageProgram.h"
#include "Status.h"

namespace bmrt::core {

/// Returns true if a dim of |tensor| is set by steps.
bool usesStepDims(const StageProgram &program, const bmodel::TensorDef &tensor);
/// Returns true if |step| is a launch or a copy with sizes that earlier steps set, or a copy between different dims.
bool usesStepDims(const StageProgram &program, const bmodel::StepDef &step);

/// Checks the plan of |program| for the dim values |dims| and the tensor sizes |bytes|: every launch keeps the contract
/// of its kernel, views stay inside their tensors, and both tensors of a copy have the same size. Afterwards no call of
/// unaltered code accesses a byte outside its tensors at these sizes. Omits views and steps whose sizes are not known
/// before a run. Requires checked contracts (Contract.h).
bmrt_code_t checkSizes(const StageProgram &program, const int64_t *dims, const uint64_t *bytes, bmrt_status_t *status);
/// Checks that the view |slot| stays inside its tensor.
bmrt_code_t checkView(const StageProgram &program, uint32_t slot, const uint64_t *bytes, bmrt_status_t *status);
/// Checks a launch or copy of |subnet| that uses dims of steps, when it runs. |params|: the values of a launch's dims.
bmrt_code_t checkStep(const StageProgram &program, const SubnetProgram &subnet, const bmodel::StepDef &step,
                      const int64_t *params, int64_t tiles, const uint64_t *bytes, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H
