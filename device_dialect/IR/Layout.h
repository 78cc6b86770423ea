//===- Layout.h - How a tensor lies in memory -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes are in elements unless a name says bytes; i1 elements take one byte each.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_LAYOUT_H
#define TESSERA_DEVICE_DIALECT_IR_LAYOUT_H

#include "device_dialect/IR/DeviceAttrs.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tessera::device {

/// The blocked encoding of a tensor type, null when the tensor is row-major.
BlockedAttr getBlockedLayout(mlir::Type type);

inline bool isBlocked(mlir::Type type) { return static_cast<bool>(getBlockedLayout(type)); }

/// The same tensor lying row-major.
mlir::RankedTensorType getRowMajorType(mlir::RankedTensorType type);

/// The same tensor in channel blocks of `block`; rank at least 2.
mlir::RankedTensorType getBlockedType(mlir::RankedTensorType type, int64_t block);

/// Dims in memory, outermost first: the dims themselves, or [N, ceil(C / b), D..., b] when blocked.
/// `?` dims stay `?`.
llvm::SmallVector<int64_t> physicalShape(mlir::RankedTensorType type);

/// Bytes of one element in memory; fails an assertion on types no tensor of ours has (index, tuples).
int64_t elementBytes(mlir::Type elementType);

/// Bytes in memory, padding lanes included. The type is static.
int64_t physicalBytes(mlir::RankedTensorType type);

/// Whether the two types lay their common logical elements at the same byte offsets, so that one can
/// stand for the other without a move.
bool sameBytes(mlir::RankedTensorType a, mlir::RankedTensorType b);

/// f16 or bf16: stored so, computed with in f32.
inline bool isNarrowFloat(mlir::Type type) { return type.isF16() || type.isBF16(); }
/// Whether sums of |type| are of f32.
inline bool isSummedInF32(mlir::Type type) { return type.isF32() || isNarrowFloat(type); }

/// Whether kernels read |type| as elements of an epilogue operand.
inline bool isEpilogueElement(mlir::Type type) {
  return type.isF32() || isNarrowFloat(type) || type.isInteger(8) || type.isInteger(16) || type.isInteger(32);
}

/// The type of an element inside a scalar region: integers have no sign there, as arith wants it.
mlir::Type scalarType(mlir::Type elementType);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_LAYOUT_H
