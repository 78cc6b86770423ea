// SPDX-License-Identifier: Apache-2.0
//===- StepInfo.h - Descriptions of steps for the C interface -------------===//
#ifndef BMRT_CORE_STEPINFO_H
#define BMRT_CORE_STEPINFO_H

#include "Plan.h"
#include "bmrt/bmrt.h"

namespace bmrt::core {

/// Describes step |index| of |plan|, which must exist.
void describeStep(const Plan &plan, uint32_t index, bmrt_step_info_t &out);

} // namespace bmrt::core

#endif // BMRT_CORE_STEPINFO_H
