//===- TableNames.h - Names that tables may use -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_TABLES_TABLENAMES_H
#define TESSERA_QUANT_TRANSFORMS_TABLES_TABLENAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::quant {

/// The names of a function's ops and tensors.
struct TableNames {
  explicit TableNames(mlir::func::FuncOp function);

  llvm::StringMap<llvm::SmallVector<mlir::Operation *>> ops;     ///< by node name and by tensor name
  llvm::StringMap<llvm::SmallVector<mlir::Operation *>> tensors; ///< only the keys are used
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_TABLES_TABLENAMES_H
