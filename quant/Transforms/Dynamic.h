//===- Dynamic.h - Matmuls whose activations are quantised at run time --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
#define TESSERA_QUANT_TRANSFORMS_DYNAMIC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::quant {

/// Results for the ops of precision DYNAMIC_INT8, W8A8 or W4A8.
struct DynamicContractions {
  llvm::DenseSet<mlir::Operation *> ops;                     ///< the integer matmuls that replaced them
  std::vector<mlir::OwningOpRef<mlir::Operation *>> removed; ///< replaced ops; kept alive because `Decisions`
                                                             ///< identifies ops by their addresses
};

/// Rewrites the matmuls that are assigned DYNAMIC_INT8 to integer matmuls whose activations are quantised row by row at
/// run time, and those that are assigned W8A8 or W4A8, whose weights are integers already, to matmuls that quantise
/// blocks of rows; see `apply-precision` in Passes.td. `groupSize`: the entries of such a block.
DynamicContractions quantizeDynamically(mlir::func::FuncOp function, int64_t groupSize);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
