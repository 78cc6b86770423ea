//===- ShapeArithmetic.h - Known values of shapes with open dims ----------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPEARITHMETIC_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPEARITHMETIC_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera::top::onnx_import {

/// One entry per element; an entry is empty if it depends on an open dim.
using PartialInts = llvm::SmallVector<std::optional<int64_t>>;

/// Returns the elements of a small i64 value that is computed from dims by the ops that exporters use for this: shape,
/// gather, slice, concat, reshape, casts, + - * /. Returns nothing for any other value. |depth| limits the length of
/// the chain of ops that is followed.
std::optional<PartialInts> knownInts(mlir::Value value, unsigned depth = 8);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SHAPEARITHMETIC_H
