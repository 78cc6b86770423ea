//===- EmitProgram.h - From a schedule to commands --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_STREAM_EMITPROGRAM_H
#define TESSERA_CODEGEN_NPU_STREAM_EMITPROGRAM_H

#include "codegen/Npu/Npu.h"
#include "codegen/Npu/Schedule/LocalSchedule.h"
#include "codegen/Npu/Schedule/PlanGroups.h"
#include "codegen/Npu/Schedule/PlanMemory.h"

namespace tessera::npu {
class FunctionEmission;

/// Called with each emitter before it runs, to attach progress reporting.
using Observe = llvm::function_ref<void(FunctionEmission &emitter)>;

/// Records in |plan| how each layer views its values and how much local memory it needs, and determines which values
/// can be resident. |mayBeResident|: if false, none can. Fails with |unsupportedOps| if ops are not supported on the
/// chip.
mlir::LogicalResult survey(mlir::func::FuncOp function, Constants &constants, const Chip &chip, ValuePlan &plan,
                           bool mayBeResident, Observe observe, std::vector<UnsupportedOp> &unsupportedOps);

/// Assigns off-chip addresses to the values that need them.
void placeOutside(ValuePlan &plan, const GroupPlan &groups);

/// A stream whose buffers have local addresses and whose commands have their waits.
struct Assembly {
  std::vector<bmodel::npu::Descriptor> commands; ///< empty if there are misfits
  Overlap overlap;                               ///< which of them may run at the same time
  uint64_t localPeak = 0;
  double cycles = 0;
  std::vector<MemoryPlan::Misfit> misfits;
};
/// Allocates local memory and orders the commands of a stream. |inputs|: arguments of the function. |effort|:
/// NpuOptions::opt; from 1 on loads are prefetched, from 2 on several kinds of overlap are tried and the fastest is
/// taken.
Assembly assemble(CommandStream &stream, uint32_t inputs, unsigned effort);

/// Returns a refusal for the op that needs most local memory among those whose tiles have no addresses.
UnsupportedOp rejectionOf(llvm::ArrayRef<MemoryPlan::Misfit> misfits, const ValuePlan &plan,
                          const CommandStream &stream);

/// The stream that the schedule on the ops produces, before it becomes a program.
struct ScheduledStream {
  std::unique_ptr<CommandStream> stream;
  Assembly assembly;
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;
  LayerSchedule layerSchedule;
};
/// Fails with |unsupportedOps|, or with an error if the schedule is invalid or does not fit.
mlir::FailureOr<ScheduledStream> streamOfSchedule(mlir::func::FuncOp function, const Chip &chip, Constants &constants,
                                                  std::vector<UnsupportedOp> &unsupportedOps);

/// Runs the program passes on an assembled stream. |observer|: NpuOptions::observeIr. Emits an error at the function if
/// the commands differ from |assembled|, for which the schedule was chosen.
mlir::LogicalResult finishStream(mlir::func::FuncOp function, const CommandStream &stream, const Overlap &overlap,
                                 llvm::ArrayRef<bmodel::npu::Descriptor> assembled,
                                 const codegen::IrObserver &observer);

/// Emits the program for the schedule on the ops. Fails with |unsupportedOps|, or with an error if the schedule is
/// invalid or does not fit.
mlir::LogicalResult emitScheduled(mlir::func::FuncOp function, const Chip &chip, Constants &constants,
                                  NpuProgram &program, std::vector<UnsupportedOp> &unsupportedOps);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_EMITPROGRAM_H
