//===- SizeValues.h - Sizes that a graph computes with ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Exporters compute with sizes, e.g. a decoder adds the number of earlier tokens to its positions. Such a size becomes
// a part of a constant table, whose position is the size, so that no lowering has to compute sizes as data.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEVALUES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEVALUES_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::top::onnx_import {

/// Returns the integers from |start| to |limit| - 1, at least one of which is an expression.
mlir::Value openRange(NodeImporter &n, Dim start, Dim limit, mlir::Type element);

/// Returns the values in |function| that are computed from sizes of open dims and that another op reads as data. Erases
/// the ops of |function| whose results nothing uses.
llvm::SetVector<mlir::Value> findSizeValues(mlir::func::FuncOp function);

/// Returns |value|, which findSizeValues() found, as parts of constant tables.
mlir::Value tabulateSizes(NodeImporter &n, mlir::Value value);

/// Lets the ops that read |value| as data read |table| instead.
void replaceSizeValue(mlir::Value value, mlir::Value table);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEVALUES_H
