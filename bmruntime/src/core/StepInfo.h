// SPDX-License-Identifier: Apache-2.0
//===- StepInfo.h - Descriptions of steps for the C interface -------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_STEPINFO_H
#define TESSERA_BMRUNTIME_SRC_CORE_STEPINFO_H

#include "ExecutionPlan.h"
#include "bmrt/bmrt.h"

namespace bmrt::core {

/// Describes step |index| of |plan|, which must exist. |dims| holds the values of the stage's dim slots, -1 for
/// unknown; null means that all are unknown.
void describeStep(const ExecutionPlan &plan, uint32_t index, const int64_t *dims, bmrt_step_info_t &out);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_STEPINFO_H
