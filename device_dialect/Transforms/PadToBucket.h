//===- PadToBucket.h - Functions of fixed sizes for a range of sizes -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PADTOBUCKET_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PADTOBUCKET_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::device {

/// The values that each symbol has in a bucket. Tensors are padded to the sizes of the largest values.
using Bucket = llvm::DenseMap<mlir::Attribute, SizeRange>;

/// The attribute of an op that keeps its symbolic sizes although its operands can be padded: the reason, as the end of
/// a sentence about the op.
inline constexpr llvm::StringLiteral kUnpaddedAttr = "device.unpadded";

/// Returns true if a type or attribute of the op contains a size that is not a number.
bool hasOpenSizes(mlir::Operation *op);

/// Rewrites a function of device ops, whose sizes are symbolic, for one bucket. The symbols get the ranges of the
/// bucket. Ops that are right beside padding get the sizes of the bucket; copies pad their operands and cut their
/// results where ops, arguments or results of the function keep their symbolic sizes. Where an op needs padding of a
/// certain value, a map sets it. Other ops keep their sizes and get kUnpaddedAttr.
void padToBucket(mlir::func::FuncOp function, const Bucket &bucket);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PADTOBUCKET_H
