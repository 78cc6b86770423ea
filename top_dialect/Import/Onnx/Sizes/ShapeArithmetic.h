//===- ShapeArithmetic.h - Sizes that a graph computes --------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SHAPEARITHMETIC_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SHAPEARITHMETIC_H

#include "top_dialect/IR/Sizes.h"

#include <optional>

namespace tessera::top::onnx_import {

/// Returns |numbers| as sizes. The smallest integer, which slices use for "before the first element", becomes the next
/// larger one, because Dim would take it for an unknown size.
llvm::SmallVector<Dim> toSizes(llvm::ArrayRef<int64_t> numbers);

/// Returns the elements of a small integer value that is computed from dims by the ops that exporters use for this:
/// shape, gather, slice, concat, reshape, expand, where, casts, negation, + - * / min max. An element that an earlier
/// op has bound to a symbol is this symbol. An element is unknown if it depends on an unknown dim. Returns nothing for
/// any other value. |depth| limits the length of the chain of ops that is followed.
std::optional<llvm::SmallVector<Dim>> readSizes(mlir::Value value, unsigned depth = 12);

/// The elements of a value of conditions; an element is missing if it is not the same at all sizes.
using Flags = std::optional<llvm::SmallVector<std::optional<bool>>>;

/// Returns the elements of a constant, or of a comparison of values that readSizes() reads. Returns nothing for any
/// other value.
Flags readFlags(mlir::Value value, unsigned depth = 12);

/// Returns the elements of |value| as readSizes() does, if none is unknown and at least one is an expression.
std::optional<llvm::SmallVector<Dim>> readOpenSizes(mlir::Value value);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SHAPEARITHMETIC_H
