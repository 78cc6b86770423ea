//===- Dynamic.h - Matmuls whose activations are quantised at run time --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
#define TESSERA_QUANT_TRANSFORMS_DYNAMIC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::quant {

/// Results for the ops of precision DYNAMIC_INT8.
struct DynamicContractions {
  llvm::DenseSet<mlir::Operation *> ops;                     ///< the integer matmuls that replaced them
  std::vector<mlir::OwningOpRef<mlir::Operation *>> removed; ///< replaced ops; kept alive because `Decisions`
                                                             ///< identifies ops by their addresses
};

/// Rewrites the matmuls that are assigned DYNAMIC_INT8 to integer matmuls whose activations are quantised row by row at
/// run time; see `apply-precision` in Passes.td.
DynamicContractions quantizeDynamically(mlir::func::FuncOp function);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
