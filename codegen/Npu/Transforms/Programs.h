//===- Programs.h - Conversion of programs ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H
#define TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H

#include "codegen/Npu/IR/NpuOps.h"
#include "codegen/Npu/Schedule/PlanMemory.h"
#include "codegen/Target/Phases.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace tessera::npu {

/// Properties of a staged program other than its steps.
struct ProgramFrame {
  std::string name;
  uint32_t inputs = 0, outputs = 0; ///< numbers of the caller's buffers
  Overlap overlap;                  ///< overlap that scheduling may use
};

/// Returns a module with the stream as its only program, staged. Drops buffers that no command uses.
mlir::OwningOpRef<mlir::ModuleOp> buildProgram(mlir::MLIRContext *context, const CommandStream &stream,
                                               const ProgramFrame &frame);

/// The steps of a program with stages, as a Stream.
class StagedProgram {
public:
  explicit StagedProgram(ProgramOp program);

  ProgramOp program;
  bmodel::npu::Chip chip;
  Constants constants; ///< empty
  CommandStream stream;
  Overlap overlap;
  std::vector<BufferOp> buffers;   ///< by number; the first is null
  std::vector<CommandOp> commands; ///< in the order of the steps, each with loads, computation and stores
};

/// Returns the chip of a verified program.
bmodel::npu::Chip chipOf(ProgramOp program);

/// Emits an error if the program is in another phase.
mlir::LogicalResult expectPhase(ProgramOp program, Phase phase);

/// Writes addresses and lifetimes to buffers. |buffers|: by number; null for none.
void setAddresses(const MemoryPlan &plan, llvm::ArrayRef<BufferOp> buffers);

/// Returns the commands of an ordered or numbered program, with all addresses.
std::vector<Descriptor> encodeProgram(ProgramOp program);

/// Runs the remaining passes until the program of a module is numbered, and returns its commands. |observer|, if any,
/// is called with the module before the first pass and after each.
mlir::FailureOr<std::vector<Descriptor>> finishProgram(mlir::ModuleOp module, const codegen::IrObserver &observer = {});

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_TRANSFORMS_PROGRAMS_H
