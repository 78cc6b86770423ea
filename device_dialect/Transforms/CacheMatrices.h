//===- CacheMatrices.h - Matrices that lie in states ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_CACHEMATRICES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_CACHEMATRICES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tessera::device {

/// If |matrices| are the first indices of a state that was appended to, as rows, returns the whole state with the
/// leading dims of |type|, a tensor of the same matrices; otherwise null.
mlir::Value wholeMatrices(mlir::OpBuilder &builder, mlir::Value matrices, mlir::RankedTensorType type);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_CACHEMATRICES_H
