//===- LocalSchedule.h - What stays in local memory, and slices -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A schedule is stored on the ops as npu.resident, npu.slices and npu.single_buffered, and as npu.effort on the
// function. A search (ScheduleSearch.h) writes it, emission reads it, and --plan stores the same by layer.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_LOCALSCHEDULE_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_LOCALSCHEDULE_H

#include "codegen/Npu/Schedule/PlanGroups.h"

namespace tessera::npu {

/// Decisions about the values and layers that a survey has found (ValuePlan).
struct LocalSchedule {
  std::vector<unsigned> resident;    ///< alias sets that stay whole
  std::vector<SliceGroup> groups;    ///< layers that run slice by slice
  std::set<uint32_t> singleBuffered; ///< layers with only one tile in local memory at a time

  LocalSchedule() = default;
  /// Collects the decisions of these plans.
  LocalSchedule(const ValuePlan &plan, const GroupPlan &groups);
};

/// Writes a schedule on the ops, replacing any other. |effort|: NpuOptions::opt.
void writeSchedule(mlir::func::FuncOp function, const ValuePlan &surveyed, const LocalSchedule &schedule,
                   unsigned effort);
/// Removes the schedule from the ops.
void eraseSchedule(mlir::func::FuncOp function);

/// Applies the schedule on the ops to the plans. |plan| is analyzed and has no residents yet. Fails with an error at
/// the op whose decision is not possible.
mlir::LogicalResult readSchedule(mlir::func::FuncOp function, const Chip &chip, ValuePlan &plan, GroupPlan &groups);
/// Returns npu.effort, or nothing if the function has no schedule.
std::optional<unsigned> effortOf(mlir::func::FuncOp function);

/// Returns the name of a layer for reports.
std::string nameOfLayer(const ValuePlan &plan, uint32_t layer);
/// Returns the schedule by layer, as --plan stores it.
LayerSchedule describe(const ValuePlan &plan, const LocalSchedule &schedule);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_LOCALSCHEDULE_H
