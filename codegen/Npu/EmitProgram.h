//===- EmitProgram.h - From a schedule to commands --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMITPROGRAM_H
#define TESSERA_CODEGEN_NPU_EMITPROGRAM_H

#include "codegen/Npu/Npu.h"
#include "codegen/Npu/PlanGroups.h"
#include "codegen/Npu/PlanMemory.h"
#include "codegen/Npu/Schedule.h"

namespace tessera::npu {
class FunctionEmission;

/// Tells how far an emitter is.
using Observe = llvm::function_ref<void(FunctionEmission &emitter)>;

/// Tells |plan| how every layer sees its values and what room it needs; then what may stay in local memory is known.
/// |mayBeResident|: anything may. Failure with refusals of ops that have no form on the chip.
mlir::LogicalResult survey(mlir::func::FuncOp function, Constants &constants, const Chip &chip, ValuePlan &plan,
                           bool mayBeResident, Observe observe, std::vector<Refusal> &refusals);

/// Gives addresses outside the chip to the values that need them.
void placeOutside(ValuePlan &plan, const GroupPlan &groups);

/// A stream whose buffers have addresses in local memory, and whose commands wait for each other.
struct Assembly {
  std::vector<bmodel::npu::Descriptor> commands; ///< none where there are misfits
  Overlap overlap;                               ///< what of them runs at the same time
  uint64_t localPeak = 0;
  double cycles = 0;
  std::vector<MemoryPlan::Misfit> misfits;
};
/// |inputs|: of the function. |effort|: NpuOptions::opt; from 1 on loads stand early, from 2 on the faster of two
/// orders is taken.
Assembly assemble(Stream &stream, uint32_t inputs, unsigned effort);

/// Of the ops whose tiles have no addresses the one that works with most.
Refusal refusalOf(llvm::ArrayRef<MemoryPlan::Misfit> misfits, const ValuePlan &plan, const Stream &stream);

/// What the schedule on the ops makes, before it is a program.
struct ScheduledStream {
  std::unique_ptr<Stream> stream;
  Assembly assembly;
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;
  LayerSchedule layerSchedule;
};
/// Failure with refusals, or with an error where the schedule is none, or has no room.
mlir::FailureOr<ScheduledStream> streamOfSchedule(mlir::func::FuncOp function, const Chip &chip, Constants &constants,
                                                  std::vector<Refusal> &refusals);

/// Makes the commands of an assembled stream as the passes on its IR do. |observer|: NpuOptions::observeIr. An error at
/// the function where they are not |assembled|, which the stream was chosen for.
mlir::LogicalResult finishStream(mlir::func::FuncOp function, const Stream &stream, const Overlap &overlap,
                                 llvm::ArrayRef<bmodel::npu::Descriptor> assembled,
                                 const codegen::IrObserver &observer);

/// The program that the schedule on the ops makes, once. Failure with refusals, or with an error where the schedule is
/// none, or has no room.
mlir::LogicalResult emitScheduled(mlir::func::FuncOp function, const Chip &chip, Constants &constants,
                                  NpuProgram &program, std::vector<Refusal> &refusals);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMITPROGRAM_H
