//===- Schedule.h - What stays in local memory, and slices ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A schedule stands on the ops: npu.resident, npu.slices, npu.single_buffered, and npu.effort on the function. A search
// (Search.h) writes it, emission reads it, --plan is the same by layer.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_H

#include "codegen/Npu/PlanGroups.h"

namespace tessera::npu {

/// Decisions about the values and layers that a survey has found (ValuePlan).
struct Schedule {
  std::vector<unsigned> resident;    ///< alias sets that stay whole
  std::vector<SliceGroup> groups;    ///< layers that run slice by slice
  std::set<uint32_t> singleBuffered; ///< layers no two tiles of which are in local memory at once

  Schedule() = default;
  /// What is chosen in these plans.
  Schedule(const ValuePlan &plan, const GroupPlan &groups);
};

/// Writes a schedule on the ops, in place of any other. |effort|: NpuOptions::opt.
void writeSchedule(mlir::func::FuncOp function, const ValuePlan &surveyed, const Schedule &schedule, unsigned effort);
/// Takes the schedule off the ops.
void eraseSchedule(mlir::func::FuncOp function);

/// Chooses in the plans what the ops say. |plan| is analyzed, nothing is chosen yet. Failure with an error at the op
/// that says what cannot be.
mlir::LogicalResult readSchedule(mlir::func::FuncOp function, const Chip &chip, ValuePlan &plan, GroupPlan &groups);
/// npu.effort; nothing where the function has no schedule.
std::optional<unsigned> effortOf(mlir::func::FuncOp function);

/// The name of a layer for people.
std::string nameOfLayer(const ValuePlan &plan, uint32_t layer);
/// The schedule by layer, as --plan tells it.
LayerSchedule describe(const ValuePlan &plan, const Schedule &schedule);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_H
