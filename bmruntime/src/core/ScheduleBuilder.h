// SPDX-License-Identifier: Apache-2.0
//===- ScheduleBuilder.h - Finds the concurrency of a stage's steps -------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_SCHEDULEBUILDER_H
#define TESSERA_BMRUNTIME_SRC_CORE_SCHEDULEBUILDER_H

#include "StageProgram.h"

namespace bmrt::core {

/// Fills |schedule| for the first subnet of |program|. It remains empty if no steps could run concurrently, or if
/// memory for the schedule has run out; the steps then run one after another.
void buildSchedule(const StageProgram &program, TaskSchedule &schedule);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_SCHEDULEBUILDER_H
