//===- Outline.h - Subnets as separate functions ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PARTITION_OUTLINE_H
#define TESSERA_CODEGEN_PARTITION_OUTLINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::partition {

/// A subnet as the function @main of a new module: its inputs are arguments, its outputs are results, and constants are
/// cloned.
struct Outlined {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> origins; ///< op of the new function -> original
};

Outlined outline(mlir::func::FuncOp from, llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> inputs,
                 llvm::ArrayRef<mlir::Value> outputs);

/// Returns the original of |op|, an op of the outlined function or a copy that a pass inserted before it; null if it
/// does not have one.
mlir::Operation *originOf(const Outlined &outlined, mlir::Operation *op);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_OUTLINE_H
