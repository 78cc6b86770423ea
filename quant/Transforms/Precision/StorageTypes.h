//===- StorageTypes.h - Assigns an integer type and a range to each tensor --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_STORAGETYPES_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_STORAGETYPES_H

#include "quant/Transforms/Precision/Decisions.h"
#include "quant/Transforms/Precision/OpKinds.h"

namespace tessera::quant {

/// Input of assignStorageTypes: what is known when the integer form of each tensor is chosen.
struct StorageTypeQuery {
  mlir::func::FuncOp function;
  llvm::ArrayRef<mlir::Operation *> ops;        ///< in program order
  Precision standard;                           ///< precision of ops without a line
  bool isAssigned;                              ///< attributes say which tensors are wide
  bool learnedWeights;                          ///< the calibration table may replace weights
  bool decidesTypes;                            ///< the calibration table says which tensors are wide
  const llvm::DenseSet<mlir::Value> &quantized; ///< the tensors that become integers
  llvm::function_ref<OpKind(mlir::Operation *)> kindOf;
  llvm::function_ref<const Choice *(mlir::Operation *)> choiceOf; ///< null if the op has no line
  llvm::function_ref<const Range *(mlir::Value)> rangeOf;         ///< null if the tensor has no range
  llvm::function_ref<llvm::StringRef(mlir::Value)> nameOf;
};

/// Fills in `decisions.tensors` and `decisions.wide` from `decisions.integers`. Tensors connected by ops that only move
/// data share one range. Tensors get 16 bits if 8 bits cause too much error or are not wanted, with as many levels as
/// possible without overflow in any sum.
void assignStorageTypes(const StorageTypeQuery &query, Decisions &decisions);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_STORAGETYPES_H
