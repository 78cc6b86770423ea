//===- Programs.h - Programs between stream, IR and bytes -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H
#define TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H

#include "codegen/Npu/IR/NpuOps.h"
#include "codegen/Npu/PlanMemory.h"
#include "codegen/Target/Phases.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace tessera::npu {

/// What a staged program is made of beside its steps.
struct ProgramFrame {
  std::string name;
  uint32_t inputs = 0, outputs = 0; ///< buffers of the caller
  Overlap overlap;                  ///< what scheduling may do
};

/// A module with the stream as its only program, staged. Buffers that no command uses are left out.
mlir::OwningOpRef<mlir::ModuleOp> buildProgram(mlir::MLIRContext *context, const Stream &stream,
                                               const ProgramFrame &frame);

/// The steps of a program that has stages.
class StagedProgram {
public:
  explicit StagedProgram(ProgramOp program);

  ProgramOp program;
  bmodel::npu::Chip chip;
  Constants constants; ///< none
  Stream stream;
  Overlap overlap;
  std::vector<BufferOp> buffers;   ///< by number; the first is none
  std::vector<CommandOp> commands; ///< as the steps have them, stage by stage: loads, computes, stores
};

/// The chip that a verified program is for.
bmodel::npu::Chip chipOf(ProgramOp program);

/// An error where the program is in another phase.
mlir::LogicalResult expectPhase(ProgramOp program, Phase phase);

/// Writes addresses and lifetimes to buffers, which are listed by number; null: none.
void setAddresses(const MemoryPlan &plan, llvm::ArrayRef<BufferOp> buffers);

/// The commands of an ordered or numbered program, with all addresses.
std::vector<Descriptor> encodeProgram(ProgramOp program);

/// Runs the passes that are left until the program of a module is numbered, and returns its commands. |observer|, if
/// any, is shown the module before the first pass and behind each.
mlir::FailureOr<std::vector<Descriptor>> finishProgram(mlir::ModuleOp module, const codegen::IrObserver &observer = {});

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H
