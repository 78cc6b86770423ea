//===- StageSizes.h - Dim slots of a stage ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_STAGESIZES_H
#define TESSERA_CODEGEN_PIPELINES_STAGESIZES_H

#include "bmodel/writer.h"
#include "top_dialect/IR/SizeUpdates.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"

namespace tessera::codegen {

/// The dim slots of a stage. The shapes of inputs and steps bind the slots of symbols; all other sizes are derived
/// from these.
class StageSizes {
public:
  explicit StageSizes(bmodel::StageDefT &stage) : stage(stage) {}

  /// Adds a slot for each symbol that the shapes of the function's inputs and the lengths of its states determine.
  /// Returns an error if they leave a symbol of an input undetermined.
  llvm::Error bindInputs(mlir::func::FuncOp function);
  /// Adds a slot for each symbol that an op of the function sets, in any of its regions.
  void bindSteps(mlir::func::FuncOp function);

  /// Applies the limits that the function's inputs have (top::kSizeLimitsAttr) and the capacities of states. Called
  /// when all tensors are laid out, because their memory is that of the sizes without limits.
  void limitSizes(mlir::func::FuncOp function);

  /// Returns the slot of |size|, which is symbolic and whose symbols are bound; adds a derived slot on first use.
  uint32_t slotOf(Dim size);
  /// Returns the operation of a step that sets a symbol to a size. The symbols of both have slots.
  bmodel::EvalDimDefT update(const top::SizeUpdate &update) const;
  /// Returns the operation of a step that fails unless two sizes are equal.
  bmodel::EvalDimDefT check(Dim a, Dim b);
  /// Returns |size|, which must not be unknown, as a dimension of a tensor.
  bmodel::Dim dimOf(Dim size) {
    return size.isKnown() ? bmodel::constantDim(size.value()) : bmodel::slotDim(stage, slotOf(size));
  }

private:
  void bindLengths(mlir::func::FuncOp function);
  bool bind(Dim size);
  bool isBound(Dim size) const;
  std::vector<bmodel::DimTerm> termsOf(Dim size) const;

  bmodel::StageDefT &stage;
  llvm::DenseMap<top::SizeAttr, uint32_t> slots;
  llvm::DenseMap<top::SizeSymbolAttr, uint32_t> symbols;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STAGESIZES_H
