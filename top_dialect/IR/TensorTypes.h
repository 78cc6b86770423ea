//===- TensorTypes.h - Types of tensor values -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TENSORTYPES_H
#define TESSERA_TOP_DIALECT_IR_TENSORTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace tessera {

/// Returns the type of `value`, which must be a ranked tensor, as all operands and results of Top and device ops are.
inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

} // namespace tessera

#endif // TESSERA_TOP_DIALECT_IR_TENSORTYPES_H
