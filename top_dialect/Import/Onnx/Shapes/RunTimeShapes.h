//===- RunTimeShapes.h - Ops whose sizes or axes a run computes -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Operators that take shapes, axes, positions or pads as inputs, for inputs that are not constant. They become ops that
// compute with i64 vectors, and moves by indices; sizes become symbols (RunTimeSizes.h).
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMESHAPES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMESHAPES_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Returns whether input |i| is a vector or scalar that is computed at run time, in a place where sizes can be bound.
bool isRunTime(NodeImporter &n, unsigned i);

/// Reduces the axes of input 1. |reduce| reduces one axis and keeps it as a dim of size 1.
mlir::Value reduceRunTimeAxes(NodeImporter &n, mlir::Value x,
                              llvm::function_ref<mlir::Value(mlir::Value x, int64_t axis)> reduce);
/// Applies |apply| along the axis that input 1 gives; the result has the shape of |x|.
mlir::Value applyAlongRunTimeAxis(NodeImporter &n, mlir::Value x,
                                  llvm::function_ref<mlir::Value(mlir::Value x, int64_t axis)> apply);

// The operators, with the inputs of the node.
void reshapeRunTime(NodeImporter &n);
void squeezeRunTime(NodeImporter &n);
void unsqueezeRunTime(NodeImporter &n);
void sliceRunTime(NodeImporter &n);
void splitRunTime(NodeImporter &n, int64_t axis);
void padRunTime(NodeImporter &n);
/// Pads |x| by |pads|, all begins and then all ends, with the scalar |fill| in mode constant.
void padOpen(NodeImporter &n, mlir::Value x, llvm::ArrayRef<Dim> pads, llvm::StringRef mode, mlir::Value fill);
void tileRunTime(NodeImporter &n);
void tileOpen(NodeImporter &n, llvm::ArrayRef<Dim> repeats);
/// Expands |x| to |sizes| of input 1. A dim other than 1 keeps its size, which the run compares.
mlir::Value expandRunTime(NodeImporter &n, mlir::Value x, llvm::SmallVector<Dim> sizes);
void rangeRunTime(NodeImporter &n);
void triluRunTime(NodeImporter &n);
void oneHotRunTime(NodeImporter &n, int64_t axis);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPES_RUNTIMESHAPES_H
