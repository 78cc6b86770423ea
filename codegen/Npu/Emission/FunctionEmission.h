//===- FunctionEmission.h - Emits a device function -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Iterates over the ops of a function, op by op or, in slice groups, slice by slice, and lets the model of each op
// append its commands. A survey does the same, but appends nothing.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H
#define TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "codegen/Npu/Emission/Moves/EarlyCopies.h"
#include "codegen/Npu/Npu.h"

namespace tessera::npu {

/// Emits, or surveys, the ops of one function.
class FunctionEmission {
public:
  /// |groups|: null for a survey, which emits nothing and records in the plan how ops view their values and how much
  /// local memory they need.
  FunctionEmission(mlir::func::FuncOp function, CommandStream &stream, ValuePlan &plan, const GroupPlan *groups);

  /// Emits all ops of the function. Fails with |unsupportedOps| if some cannot be emitted.
  mlir::LogicalResult run();
  /// Called when a layer does not fit beside the resident values. Returns true if the plan has been changed for another
  /// attempt; the error is then dropped and emission continues, although its output will be discarded.
  std::function<bool(uint32_t layer)> spillUntilFits = [](uint32_t) { return false; };
  /// Called with the number of emitted ops.
  std::function<void(size_t done, size_t total)> progress = [](size_t, size_t) {};
  std::vector<UnsupportedOp> unsupportedOps;

private:
  llvm::Error emit(mlir::Operation *op);
  llvm::Error emitWith(mlir::Operation *op, llvm::function_ref<llvm::Error()> emit);
  llvm::Error emitGroup(const SliceGroup &group, llvm::ArrayRef<mlir::Operation *> ops);
  llvm::Error emitCopiesBehind(mlir::Operation *op);
  llvm::Error emitOutputs();
  llvm::Error emitOutput(unsigned index, mlir::Value value);
  llvm::SmallVector<mlir::Operation *> emittedOps();
  /// Returns the ONNX names of an op and of the ops fused into it, joined by "+".
  std::string nameOf(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  CommandStream &stream;
  ValuePlan &plan;
  const GroupPlan *groups;
  const FusedOps fusedOps;
  Tiler tiler;
  OperandPlacer operands;
  EarlyCopies copies;
  EmissionContext context;
  mlir::Operation *rejectedOutput = nullptr; ///< computes the output whose copy failed
  uint32_t number = 0;                       ///< of the current op among the emitted ones
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H
