//===- FunctionEmission.h - A device function as steps ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Runs over the ops of a function, op by op or, in groups, slice by slice, and lets the model of each append its
// commands. A survey runs the same way and appends nothing.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H
#define TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H

#include "codegen/Npu/Emission/EarlyCopies.h"
#include "codegen/Npu/Emission/EmissionContext.h"
#include "codegen/Npu/Npu.h"

namespace tessera::npu {

class FunctionEmission {
public:
  /// Without |groups| nothing is emitted; the plan is told how ops see their values and what room they need.
  FunctionEmission(mlir::func::FuncOp function, Stream &stream, ValuePlan &plan, const GroupPlan *groups);

  /// All ops of the function; fails with refusals where some cannot be emitted.
  mlir::LogicalResult run();
  /// Is told that a layer lacks room beside the values that stay. True: the plan has been changed for another attempt,
  /// so the error is dropped, and what is emitted will be.
  std::function<bool(uint32_t layer)> findRoom = [](uint32_t) { return false; };
  /// Is told how many ops of all are emitted.
  std::function<void(size_t done, size_t total)> progress = [](size_t, size_t) {};
  std::vector<Refusal> refusals;

private:
  llvm::Error emit(mlir::Operation *op);
  llvm::Error emitWith(mlir::Operation *op, llvm::function_ref<llvm::Error()> emit);
  llvm::Error emitGroup(const SliceGroup &group, llvm::ArrayRef<mlir::Operation *> ops);
  llvm::Error emitCopiesBehind(mlir::Operation *op);
  llvm::Error emitOutputs();
  llvm::Error emitOutput(unsigned index, mlir::Value value);
  llvm::SmallVector<mlir::Operation *> emittedOps();
  /// Of an op and what is folded into it.
  std::string nameOf(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  Stream &stream;
  ValuePlan &plan;
  const GroupPlan *groups;
  const FusedOps fusedOps;
  Tiler tiler;
  OperandPlacer operands;
  EarlyCopies copies;
  EmissionContext context;
  mlir::Operation *refusedOutput = nullptr; ///< makes an output that cannot be copied
  uint32_t number = 0;                      ///< of the op that is emitted, among all that are
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_FUNCTIONEMISSION_H
