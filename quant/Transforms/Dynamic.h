//===- Dynamic.h - Products whose activations are quantised at run time -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/OwningOpRef.h"
#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// What became of the ops of precision DYNAMIC_INT8.
struct DynamicProducts {
  llvm::DenseSet<mlir::Operation *> ops;                     ///< integer products that took their places
  llvm::MapVector<mlir::Operation *, std::string> kept;      ///< could not, and why
  std::vector<mlir::OwningOpRef<mlir::Operation *>> removed; ///< alive while `decisions` knows ops by their addresses
};

/// Rewrites the matmuls of that precision (by `decisions.asked`, else `precision`) to integer products of rows that are
/// quantised as they come (see `top-quantize` in Passes.td). Fails where a line of the table at `path` asks for what is
/// no such matmul.
llvm::Expected<DynamicProducts> quantizeDynamically(mlir::func::FuncOp function, const Decisions &decisions,
                                                    Precision precision, llvm::StringRef path);

} // namespace tessera::quant
