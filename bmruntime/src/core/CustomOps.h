// SPDX-License-Identifier: Apache-2.0
//===- CustomOps.h - Calls of custom operators ----------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H
#define TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H

#include "ExecutionPlan.h"
#include "StageProgram.h"
#include "Status.h"
#include "bmodel/custom_ops.h"

namespace bmrt::core {

/// Finds the operators that the steps of |subnet| call, and checks that their shape rules agree with the file if its
/// sizes are numbers.
bmrt_code_t resolveCustomOps(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status);

/// Makes the call of a custom operator that is |call|.
bmrt_code_t runCustomOp(const bmodel::StageDef &stage, const Step &call, const int64_t *dims, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_CUSTOMOPS_H
