//===- Dynamic.h - Matmuls whose activations are quantised at run time --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
#define TESSERA_QUANT_TRANSFORMS_DYNAMIC_H

#include "mlir/IR/OwningOpRef.h"
#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// Results for the ops of precision DYNAMIC_INT8.
struct DynamicContractions {
  llvm::DenseSet<mlir::Operation *> ops;                     ///< the integer matmuls that replaced them
  llvm::MapVector<mlir::Operation *, std::string> kept;      ///< ops that could not be rewritten, with the reason
  std::vector<mlir::OwningOpRef<mlir::Operation *>> removed; ///< replaced ops; kept alive because `decisions`
                                                             ///< identifies ops by their addresses
};

/// Rewrites the matmuls of precision DYNAMIC_INT8 (by `decisions.asked`, else `precision`) to integer matmuls whose
/// activations are quantised row by row at run time; see `top-quantize` in Passes.td. Fails if a line of the table at
/// `path` requests this for an op that does not support it.
llvm::Expected<DynamicContractions> quantizeDynamically(mlir::func::FuncOp function, const Decisions &decisions,
                                                        Precision precision, llvm::StringRef path);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_DYNAMIC_H
