//===- TableNames.h - The names that tables may use -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::quant {

/// The names of a function's ops and tensors.
struct TableNames {
  explicit TableNames(mlir::func::FuncOp function);

  llvm::StringMap<llvm::SmallVector<mlir::Operation *>> ops;     ///< by node and by tensor
  llvm::StringMap<llvm::SmallVector<mlir::Operation *>> tensors; ///< only the keys
};

} // namespace tessera::quant
