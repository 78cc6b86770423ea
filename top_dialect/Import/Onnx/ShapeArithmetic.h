//===- ShapeArithmetic.h - What is known of shapes with open dims ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera::top::onnx_import {

/// One entry per element; nothing where it depends on an open dim.
using PartialInts = llvm::SmallVector<std::optional<int64_t>>;

/// The elements of a small i64 value that is computed from dims by the ops exporters use for that:
/// shape, gather, slice, concat, reshape, casts, + - * /. Nothing for any other value. Looks at most
/// one op deep beyond constants the importer has already folded, plus a bounded chain of the above.
std::optional<PartialInts> knownInts(mlir::Value value, unsigned depth = 8);

} // namespace tessera::top::onnx_import
