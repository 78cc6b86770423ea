// SPDX-License-Identifier: Apache-2.0
//===- SizeCheck.h - Checks a plan for one vector of sizes ----------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H
#define TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H

#include "StageProgram.h"
#include "Status.h"

namespace bmrt::core {

/// Checks the plan of |program| for the dim values |dims| and the tensor sizes |bytes|: every launch keeps the contract
/// of its kernel, views stay inside their tensors, and both tensors of a copy have the same size. Afterwards no call of
/// unaltered code accesses a byte outside its tensors at these sizes. Requires checked contracts (Contract.h).
bmrt_code_t checkSizes(const StageProgram &program, const int64_t *dims, const uint64_t *bytes, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_SIZECHECK_H
